"""One node count of a candidate with its best plan and the whole run on it."""

from dataclasses import dataclass
from math import inf

from planner.cost.workload import Workload
from planner.job.variants import with_settings
from planner.planning.comparison.answer import Point, Searched
from planner.planning.comparison.candidates.task import Task
from planner.planning.economics import Planned as Phase
from planner.specs.answer.result import RankedPlan, Result, SearchReport
from planner.specs.answer.run import Run
from planner.specs.training import TrainingSpec


@dataclass(frozen=True)
class Planned:
    """One node count with its best plan and the whole run on it.

    Attributes:
        nodes: Number of nodes. [1]
        gpus: GPUs in service. [1]
        status: Status of the search; of several phases the least certain. [-]
        gap: Largest share by which a step may be faster than the step found. [1]
        least_s: No run on these nodes is shorter. [s]
        settled: The gap is within the tolerance, or there is proven to be no plan. [-]
        search: Numbers of the search of the first phase. [-]
        phases: Every phase with its plan; one, if the run has none. [-]
        run: The whole run under them. [-]
        outlay_usd: Money to sign for. [USD]
        why: Reason against a plan. [text]
    """

    nodes: int
    gpus: int
    status: str
    gap: float = 1.0
    least_s: float = 0.0
    settled: bool = False
    search: Searched | None = None
    phases: tuple[Phase, ...] = ()
    run: Run | None = None
    outlay_usd: float | None = None
    why: str = ""

    @property
    def plan(self) -> RankedPlan | None:
        """Plan of the first phase. [-]."""
        return self.phases[0].plan if self.phases else None

    @property
    def workload(self) -> Workload | None:
        """Job of the first phase. [-]."""
        return self.phases[0].workload if self.phases else None

    @property
    def step_s(self) -> float | None:
        """Step time of the first phase's plan. [s]."""
        return None if self.plan is None else self.plan.estimate.step_time_s.value

    @property
    def time_s(self) -> float | None:
        """Time of the whole run. [s]."""
        return None if self.run is None else self.run.time_to_train_s.value

    @property
    def cost_usd(self) -> float | None:
        """Cost of the whole run, None without a price. [USD]."""
        cost = None if self.run is None else self.run.cost_usd
        return None if cost is None else cost.total.value

    @property
    def point(self) -> Point:
        """This count as a row of the answer. [-]."""
        return Point(
            nodes=self.nodes,
            gpus=self.gpus,
            status=self.status,
            gap=self.gap,
            step_time_s=self.step_s,
            time_s=self.time_s,
            least_s=self.least_s,
            settled=self.settled,
            cost_usd=self.cost_usd,
            outlay_usd=self.outlay_usd,
            why=self.why,
        )


def phase_of(
    name: str,
    workloads: tuple[Workload, ...],
    plan: RankedPlan,
    training: TrainingSpec,
) -> Phase:
    """A phase with its plan, under the framework and settings that the plan chose.

    Args:
        name: Name of the phase, empty where the run has none. [text]
        workloads: Job of the phase under each framework. [-]
        plan: Best plan of the phase. [-]
        training: Training block of the job. [-]
    """
    chosen = str(plan.estimate.stack.get("framework"))
    by_name = {workload.framework.name: workload for workload in workloads}
    its = with_settings(by_name.get(chosen, workloads[0]), plan.settings)
    return Phase(name, its, plan, training)


def without(nodes: int, gpus: int, result: Result) -> Planned:
    """A count that no plan was found for."""
    proven = result.status == "infeasible"
    why = "; ".join(result.explanation.infeasible)
    late = "no plan was found before the search ended"
    return Planned(
        nodes,
        gpus,
        result.status,
        least_s=inf if proven else 0.0,
        settled=proven,
        search=searched(result.search),
        why=why if proven else late,
    )


def searched(report: SearchReport) -> Searched:
    """Numbers of a search, without the time that it took."""
    return Searched.model_validate(report.model_dump(exclude={"seconds"}))


def outlay(task: Task, workload: Workload, run: Run) -> float | None:
    """Money to sign for: the hardware where it is bought, else the run's rent.

    Returns:
        Money, None without a price. [USD]
    """
    if run.cost_usd is None:
        return None
    node = workload.topology.cluster.node
    its = task.terms(workload).nodes[node.name]
    assert its.price is not None
    if its.price.is_rate:
        return run.cost_usd.total.value
    return run.nodes.paid * its.price.per_gpu(its.gpus) * its.gpus

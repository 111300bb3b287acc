"""Node counts of one candidate, each planned when it is asked about, and once."""

from dataclasses import dataclass

from planner.comparison.answer import Point
from planner.comparison.task import Task
from planner.cost.workload import Workload
from planner.economics import Planned as Phase
from planner.economics import run_of
from planner.errors import BadInputError
from planner.explain.case import Clock
from planner.optimize import optimize
from planner.specs.result import RankedPlan, Result, SearchReport
from planner.specs.run import Run
from planner.specs.training import TrainingSpec
from planner.variants import with_settings

SHARES = 4
"""Searches that the time of a candidate is meant for. [1]"""
LEAST_S = 1.0
"""Time of a search, whatever is left for the candidate. [s]"""


@dataclass(frozen=True)
class Planned:
    """One node count with its best plan and the whole run on it.

    Attributes:
        nodes: How many. [1]
        gpus: In service. [1]
        status: Of the search; of several phases the least certain. [-]
        gap: How much faster a step may be than the one found, at most. [1]
        search: How the space of the first phase was exhausted. [-]
        phases: Every phase with its plan; one, if the run has none. [-]
        run: The whole run under them. [-]
        outlay_usd: What is signed for. [USD]
        why: What stands against a plan. [text]
    """

    nodes: int
    gpus: int
    status: str
    gap: float = 1.0
    search: SearchReport | None = None
    phases: tuple[Phase, ...] = ()
    run: Run | None = None
    outlay_usd: float | None = None
    why: str = ""

    @property
    def plan(self) -> RankedPlan | None:
        """Of the first phase. [-]."""
        return self.phases[0].plan if self.phases else None

    @property
    def workload(self) -> Workload | None:
        """What that plan is for. [-]."""
        return self.phases[0].workload if self.phases else None

    @property
    def step_s(self) -> float | None:
        """Step of that plan. [s]."""
        return None if self.plan is None else self.plan.estimate.step_time_s.value

    @property
    def time_s(self) -> float | None:
        """The whole run. [s]."""
        return None if self.run is None else self.run.time_to_train_s.value

    @property
    def cost_usd(self) -> float | None:
        """The whole run, None without a price. [USD]."""
        cost = None if self.run is None else self.run.cost_usd
        return None if cost is None else cost.total.value

    @property
    def point(self) -> Point:
        """The same as a row of the answer. [-]."""
        return Point(
            nodes=self.nodes,
            gpus=self.gpus,
            status=self.status,
            gap=self.gap,
            step_time_s=self.step_s,
            time_s=self.time_s,
            cost_usd=self.cost_usd,
            outlay_usd=self.outlay_usd,
            why=self.why,
        )


class Counts:
    """What is known of a candidate's node counts.

    All searches share the candidate's time: each has a fourth of it at most, and half
    of what is left, but never less than a second.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.seen: dict[int, Planned] = {}
        self.clock = Clock(task.effort.time_limit_s)

    def at(self, nodes: int) -> Planned:
        """The best plan on so many nodes, within the tolerance.

        Args:
            nodes: How many. [1]

        Returns:
            The plan and its run, or what stands against one. [-]
        """
        if nodes not in self.seen:
            self.seen[nodes] = self._planned(nodes)
        return self.seen[nodes]

    def _seconds(self) -> float:
        """Time of the next search. [s]."""
        whole = self.task.effort.time_limit_s
        if len(self.task.counts) == 1:
            return whole
        return max(min(whole / SHARES, self.clock.left / 2), LEAST_S)

    def _planned(self, nodes: int) -> Planned:
        gpus, results, phases = 0, [], []
        for name, job in self.task.phases(nodes):
            workloads = self.task.resolved(job)
            gpus = workloads[0].fleet_gpus
            try:
                result = self._search(workloads)
            except BadInputError as error:
                return Planned(nodes, gpus, "infeasible", why=error.message)
            if not result.plans:
                return _without(nodes, gpus, result)
            assert job.training is not None
            results.append(result)
            phases.append(phase_of(name, workloads, result.plans[0], job.training))
        return self._told(nodes, gpus, results, tuple(phases))

    def _search(self, workloads: tuple[Workload, ...]) -> Result:
        effort = self.task.effort
        return optimize(
            workloads,
            top=1,
            time_limit=self._seconds(),
            tolerance=effort.tolerance,
        )

    def _told(
        self, nodes: int, gpus: int, results: list[Result], phases: tuple[Phase, ...]
    ) -> Planned:
        proven = all(result.status == "optimal" for result in results)
        run = run_of(phases, self.task.spec.economics)
        assert run is not None
        return Planned(
            nodes=nodes,
            gpus=gpus,
            status="optimal" if proven else "feasible",
            gap=max(result.objective.gap for result in results),
            search=results[0].search,
            phases=phases,
            run=run,
            outlay_usd=outlay(self.task, phases[0].workload, run),
        )


def phase_of(
    name: str,
    workloads: tuple[Workload, ...],
    plan: RankedPlan,
    training: TrainingSpec,
) -> Phase:
    """A phase with its plan, under the framework and settings that the plan chose.

    Args:
        name: Of the phase, empty where the run has none. [text]
        workloads: Its job under each framework. [-]
        plan: The best. [-]
        training: As in the job. [-]

    Returns:
        What a run is computed from. [-]
    """
    chosen = str(plan.estimate.stack.get("framework"))
    by_name = {workload.framework.name: workload for workload in workloads}
    its = with_settings(by_name.get(chosen, workloads[0]), plan.settings)
    return Phase(name, its, plan, training)


def _without(nodes: int, gpus: int, result: Result) -> Planned:
    """A count that no plan was found for."""
    proven = result.status == "infeasible"
    why = "; ".join(result.explanation.infeasible)
    late = "no plan was found in the time there was"
    return Planned(
        nodes, gpus, result.status, search=result.search, why=why if proven else late
    )


def outlay(task: Task, workload: Workload, run: Run) -> float | None:
    """What is signed for: the hardware where it is bought, else the run's rent.

    Args:
        task: The candidate. [-]
        workload: The job on its nodes. [-]
        run: The whole run. [-]

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

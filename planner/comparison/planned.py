"""Node counts of one candidate, each planned when it is asked about, and once."""

from dataclasses import dataclass, replace

from planner.comparison.answer import Point
from planner.comparison.task import Task
from planner.cost.workload import Workload
from planner.economics import Stretch, whole_run
from planner.errors import BadInputError
from planner.optimize import optimize
from planner.specs.result import RankedPlan, Result, SearchReport
from planner.specs.run import Run
from planner.variants import with_settings

SCAN_TOLERANCE = 0.05
"""How close to the best a plan has to be while node counts are weighed. [1]"""


@dataclass(frozen=True)
class Planned:
    """One node count with its best plan and the whole run on it.

    Attributes:
        nodes: How many. [1]
        gpus: In service. [1]
        status: Of the search. [-]
        bound_s: No plan's step is shorter. [s]
        search: How the space was exhausted. [-]
        plan: The best found, None without one. [-]
        workload: What it is for. [-]
        run: The whole run under it. [-]
        outlay_usd: What is signed for. [USD]
        why: What stands against a plan. [text]
    """

    nodes: int
    gpus: int
    status: str
    bound_s: float = 0.0
    search: SearchReport | None = None
    plan: RankedPlan | None = None
    workload: Workload | None = None
    run: Run | None = None
    outlay_usd: float | None = None
    why: str = ""

    @property
    def step_s(self) -> float | None:
        """Step of the plan. [s]."""
        return None if self.plan is None else self.plan.estimate.step_time_s.value

    @property
    def gap(self) -> float:
        """How much faster a plan may be than the one found, at most. [1]."""
        if self.step_s is None:
            return 1.0
        return max(0.0, 1.0 - self.bound_s / self.step_s)

    @property
    def time_s(self) -> float | None:
        """The whole run. [s]."""
        return None if self.run is None else self.run.time_to_train_s.value

    @property
    def cost_usd(self) -> float | None:
        """The whole run, None without a price. [USD]."""
        cost = self.run and self.run.cost_usd
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
    """What is known of a candidate's node counts."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.seen: dict[int, Planned] = {}

    def at(self, nodes: int) -> Planned:
        """The best plan on so many nodes, within the tolerance of a scan.

        Args:
            nodes: How many. [1]

        Returns:
            The plan and its run, or what stands against one. [-]
        """
        if nodes not in self.seen:
            tolerance = max(SCAN_TOLERANCE, self.task.effort.tolerance)
            if len(self.task.counts) == 1 or not self.task.effort.tolerance:
                tolerance = self.task.effort.tolerance
            self.seen[nodes] = self._planned(nodes, tolerance, float("inf"))
        return self.seen[nodes]

    def closer(self, nodes: int, step_s: float) -> Planned:
        """Look for a plan of a step that would do, where the bound leaves one open.

        Args:
            nodes: A count that has a plan. [1]
            step_s: A slower step is of no use. [s]

        Returns:
            A faster plan; or the one there was, with a better bound. [-]
        """
        known = self.at(nodes)
        if known.bound_s > step_s:
            return known
        better = self._planned(nodes, 0.0, step_s)
        if better.plan is None:
            bound = max(known.bound_s, min(better.bound_s, step_s))
            better = replace(known, bound_s=bound)
        self.seen[nodes] = better
        return better

    def best_at(self, nodes: int) -> Planned:
        """The best plan on so many nodes, within the tolerance of the answer.

        Args:
            nodes: How many. [1]

        Returns:
            The plan and its run. [-]
        """
        known = self.at(nodes)
        if known.plan is None or known.gap <= self.task.effort.tolerance:
            return known
        again = self._planned(nodes, self.task.effort.tolerance, float("inf"))
        if again.step_s is None or (known.step_s or 0.0) < again.step_s:
            again = replace(known, bound_s=max(known.bound_s, again.bound_s))
        self.seen[nodes] = again
        return again

    def _planned(self, nodes: int, tolerance: float, known_s: float) -> Planned:
        workloads = self.task.workloads(nodes)
        gpus = workloads[0].topology.gpus
        try:
            result = optimize(
                workloads,
                top=1,
                time_limit=self.task.effort.time_limit_s,
                tolerance=tolerance,
                known_s=known_s,
            )
        except BadInputError as error:
            return Planned(nodes, gpus, "infeasible", why=error.message)
        if not result.plans:
            return _without(nodes, gpus, result, known_s)
        plan = result.plans[0]
        workload = _workload_of(workloads, plan)
        run = run_of(self.task, workload, plan)
        bound = plan.estimate.step_time_s.value * (1 - result.objective.gap)
        return Planned(
            nodes=nodes,
            gpus=gpus,
            status=result.status,
            bound_s=bound,
            search=result.search,
            plan=plan,
            workload=workload,
            run=run,
            outlay_usd=outlay(self.task, workload, run),
        )


def _without(nodes: int, gpus: int, result: Result, known_s: float) -> Planned:
    """A count that no plan was found for."""
    proven = result.status in ("infeasible", "optimal")
    why = "; ".join(result.explanation.infeasible)
    late = "no plan was found in the time there was"
    return Planned(
        nodes,
        gpus,
        result.status,
        bound_s=known_s if proven else 0.0,
        search=result.search,
        why=why if proven else late,
    )


def _workload_of(workloads: tuple[Workload, ...], plan: RankedPlan) -> Workload:
    chosen = str(plan.estimate.stack.get("framework"))
    by_name = {workload.framework.name: workload for workload in workloads}
    return with_settings(by_name.get(chosen, workloads[0]), plan.settings)


def run_of(task: Task, workload: Workload, plan: RankedPlan) -> Run:
    """The whole run under one plan.

    Args:
        task: The candidate. [-]
        workload: What the plan is for. [-]
        plan: Layout and step time. [-]

    Returns:
        Time, cost, energy, each with its interval. [-]
    """
    tokens = task.question.tokens
    stretch = Stretch(workload, plan.layout, plan.estimate, tokens)
    return whole_run([stretch], task.terms(workload))


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

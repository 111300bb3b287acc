"""Plans and bounds of a candidate's node counts, each searched when asked for."""

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from math import inf

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.planning.comparison.answer import Floor as RuledOut
from planner.planning.comparison.candidates.counts import counts_up_to, is_filled
from planner.planning.comparison.candidates.least import Floor, Least
from planner.planning.comparison.candidates.plan_cache import (
    Planned,
    outlay,
    phase_of,
    searched,
    without,
)
from planner.planning.comparison.candidates.task import Task, sized
from planner.planning.economics import Planned as Phase
from planner.planning.economics import run_of
from planner.planning.optimize import Enough, optimize
from planner.specs.answer.result import Result

PLAN_SHARE, VERDICT_SHARE = 2.0, 8.0
"""Searches for a plan, and for a verdict alone, that the work of a candidate is meant
for. [1]"""
LEAST_WORK = 2000.0
"""Work of a search for a plan, whatever is left for the candidate. [1]"""


class Counts:
    """Plans and bounds of a candidate's node counts, and the work that is left.

    All searches share the candidate's work. A search for a plan has half of it, or all
    of it with a single count; a search for a verdict has an eighth. No share exceeds
    the work that is left, but a search for a plan has at least `LEAST_WORK`. Work is
    counted, so results depend neither on the machine nor on the machine's load. The
    user's time limit may end the searches earlier.
    """

    def __init__(self, task: Task, ruled_out: Iterable[RuledOut] = ()) -> None:
        self.task = task
        self.seen: dict[int, Planned] = {}
        self.floors = {floor.nodes: floor.time_s for floor in ruled_out}
        self.left = task.effort.work
        self.out_of_time = False
        self.asked: dict[int, float] = {}
        self._least: dict[int, Least] = {}

    @cached_property
    def floor(self) -> Floor:
        """Lower bounds of every plan of the candidate. [-]."""
        return Floor(self.task)

    @cached_property
    def sensible(self) -> tuple[int, ...]:
        """Counts that are worth a first look, ascending. [1]."""
        counts = set(self.task.counts)
        likely = counts_up_to(self.task.smallest, self.task.counts[-1])
        return tuple(n for n in likely if n in counts and self.is_own(n)) or (
            self.task.counts
        )

    def is_own(self, nodes: int) -> bool:
        """Tell if no smaller count stands for this count.

        Returns:
            False where some nodes stay idle whatever the layout. [-]
        """
        return is_filled(self.floor.phases[0], nodes)

    @property
    def ruled_out(self) -> tuple[RuledOut, ...]:
        """Counts that were searched and have no plan that would do. [-]."""
        kept = self.floors.items()
        found = [(n, s) for n, s in kept if 0 < s < inf and n not in self.seen]
        return tuple(RuledOut(nodes=n, time_s=s) for n, s in sorted(found))

    def least(self, nodes: int) -> Least:
        """Lower bounds of every plan on some nodes, before any search."""
        if nodes not in self._least:
            self._least[nodes] = self.floor.at(nodes)
        return self._least[nodes]

    def least_s(self, nodes: int) -> float:
        """Lower bound of the run time on some nodes, by what is known.

        Returns:
            The bound; inf where there is no plan. [s]
        """
        planned = self.seen.get(nodes)
        known = 0.0 if planned is None else planned.least_s
        return max(self.least(nodes).time_s, self.floors.get(nodes, 0.0), known)

    def at(self, nodes: int, tolerance: float | None = None) -> Planned:
        """Best plan on some nodes, within the tolerance."""
        wanted = self.task.effort.tolerance if tolerance is None else tolerance
        done = self._is_done(nodes, wanted) or self.asked.get(nodes, 1.0) <= wanted
        if not done and self._is_over():
            gpus = sized(self.floor.first, nodes).fleet_gpus
            why = "the time limit was over before it was planned"
            return self.seen.setdefault(nodes, Planned(nodes, gpus, "unknown", why=why))
        if not done:
            alone = len(self.task.counts) == 1
            share = self.task.effort.work / (1.0 if alone else PLAN_SHARE)
            work = max(min(share, self.left), LEAST_WORK)
            self._learn(self._planned(nodes, work, wanted))
            self.asked[nodes] = wanted
        return self.seen[nodes]

    def _is_done(self, nodes: int, tolerance: float) -> bool:
        """True where the plan of a count is within a tolerance, or proven absent."""
        known = self.seen.get(nodes)
        if known is None or known.plan is None:
            return known is not None and known.settled
        return known.gap <= tolerance + ROUNDING

    def beats(self, nodes: int, limit_s: float) -> bool | None:
        """Tell if a run on some nodes takes no longer than a limit.

        The search takes the limit as the step of a known plan. It skips slower plans,
        and the first plan that is as fast ends it.

        Args:
            nodes: Number of nodes. [1]
            limit_s: Longest time of the run. [s]

        Returns:
            True or False; None where the work ended before either was proven. [-]
        """
        if (known := self._known(nodes, limit_s)) is not None:
            return known
        if self.left <= 0 or self._is_over():
            return None
        if limit_s == inf:
            planned = self.at(nodes)
            return True if planned.plan is not None else self._known(nodes, limit_s)
        step_s = limit_s / per if (per := self.least(nodes).per_step) else inf
        work = min(self.task.effort.work / VERDICT_SHARE, self.left)
        self._learn(self._planned(nodes, work, 0.0, step_s), limit_s)
        if (known := self._known(nodes, limit_s)) is not None or step_s == inf:
            return known
        if nodes in self.seen and self.seen[nodes].plan is not None:
            # The plan is as fast by its step alone; its checkpoints decide.
            self._learn(self._planned(nodes, min(work, self.left), 0.0))
        return self._known(nodes, limit_s)

    def _known(self, nodes: int, limit_s: float) -> bool | None:
        """Verdict on a limit, where no search is needed; else None."""
        planned = self.seen.get(nodes)
        if planned is not None and planned.time_s is not None:
            if planned.time_s <= limit_s:
                return True
            if planned.status == "optimal":
                return False
        least_s = self.least_s(nodes)
        return False if least_s > limit_s or least_s == inf else None

    def _learn(self, found: Planned, limit_s: float = inf) -> None:
        """Keep the faster plan and the better bound."""
        nodes = found.nodes
        known = self.seen.get(nodes)
        least = max(found.least_s, known.least_s if known else 0.0)
        if found.plan is None and limit_s < inf:
            self.floors[nodes] = max(self.floors.get(nodes, 0.0), least)
            return
        if known is not None and _is_faster(known, found):
            gap = min(known.gap, 1 - (1 - found.gap) * _ratio(found, known))
            settled = known.settled or found.settled
            found = replace(known, gap=max(gap, 0.0), settled=settled)
        most = inf if found.time_s is None else found.time_s
        self.seen[nodes] = replace(found, least_s=min(least, most))

    def _is_over(self) -> bool:
        """True where the user's time limit is over."""
        self.out_of_time = self.out_of_time or time.time() >= self.task.until
        return self.out_of_time

    def _planned(
        self, nodes: int, work: float, tolerance: float, known_s: float = inf
    ) -> Planned:
        gpus, results, phases = 0, [], []
        for name, job in self.task.phases(nodes):
            workloads = self.task.resolved(job)
            gpus = workloads[0].fleet_gpus
            try:
                result = self._search(workloads, work, tolerance, known_s)
            except BadInputError as error:
                return Planned(
                    nodes,
                    gpus,
                    "infeasible",
                    least_s=inf,
                    settled=True,
                    why=error.message,
                )
            if not result.plans:
                return self._without(nodes, gpus, result, known_s)
            assert job.training is not None
            results.append(result)
            phases.append(phase_of(name, workloads, result.plans[0], job.training))
        return self._with_plans(nodes, gpus, results, tuple(phases))

    def _search(
        self,
        workloads: tuple[Workload, ...],
        work: float,
        tolerance: float,
        known_s: float,
    ) -> Result:
        enough = Enough(work=work, step_s=0.0 if known_s == inf else known_s)
        result = optimize(
            [each.at_risk_of_most(robust=True) for each in workloads],
            top=1,
            time_limit=self.task.until - time.time(),
            known_s=known_s,
            tolerance=tolerance,
            enough=enough,
        )
        self.left -= result.search.work
        self._is_over()
        return result

    def _without(
        self, nodes: int, gpus: int, result: Result, known_s: float
    ) -> Planned:
        """Count without a plan, or without a plan as fast as the known step."""
        found = without(nodes, gpus, result)
        if known_s == inf or found.settled:
            return found
        bound_s = min(self._bound_s(result), known_s)
        proven = result.status == "optimal"
        # To the next number above: none as fast was found.
        least = (known_s * BEYOND if proven else bound_s) * self.least(nodes).per_step
        return replace(found, least_s=least)

    def _bound_s(self, result: Result) -> float:
        """Least step that the search leaves open. [s]."""
        training = self.floor.first.training
        tokens = training.step_tokens
        return tokens / result.objective.bound if result.objective.bound else inf

    def _with_plans(
        self, nodes: int, gpus: int, results: list[Result], phases: tuple[Phase, ...]
    ) -> Planned:
        proven = all(result.status == "optimal" for result in results)
        gap = max(result.objective.gap for result in results)
        run = run_of(phases, self.task.spec.economics)
        assert run is not None
        value = run.time_to_train_s.value
        pairs = zip(phases, results, self.least(nodes).per_steps, strict=True)
        open_s = sum(_open_s(*pair) for pair in pairs)
        return Planned(
            nodes=nodes,
            gpus=gpus,
            status="optimal" if proven else "feasible",
            gap=gap,
            least_s=value if proven else min(open_s, value),
            settled=proven or gap <= self.task.effort.tolerance + ROUNDING,
            search=searched(results[0].search),
            phases=phases,
            run=run,
            outlay_usd=outlay(self.task, phases[0].workload, run),
        )


ROUNDING = 1e-9
"""Rounding error of a gap. [1]"""
BEYOND = 1.0 + 1e-12
"""Bound on a step that is proven longer than a known step, over that step. [1]"""


def _open_s(phase: Phase, result: Result, per_step: float) -> float:
    """Least time of a phase that the search of its plan leaves open. [s]."""
    step_s = phase.plan.estimate.step_time_s.value
    return step_s * (1 - result.objective.gap) * per_step


def _is_faster(one: Planned, other: Planned) -> bool:
    """True where the first has the shorter run; an absent run counts as the longest."""
    return one.time_s is not None and (
        other.time_s is None or one.time_s < other.time_s
    )


def _ratio(one: Planned, other: Planned) -> float:
    """Step of the first plan over the step of the second. [1]."""
    if one.step_s is None or other.step_s is None:
        return 0.0
    return one.step_s / other.step_s

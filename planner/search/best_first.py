"""Best-first over all candidates: the proof that nothing better was left out."""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from planner.cost.pipeline import fits, rank_blocks, step_ns
from planner.cost.room import (
    buffer_bytes,
    communication_bytes,
    context_bytes,
    device_bytes,
)
from planner.cost.table import CostTable, fill_table
from planner.cost.workload import Workload
from planner.search.bounds import relax, space_bounds
from planner.search.candidate import CandidateWork
from planner.search.incumbents import Found, Incumbents, degrees
from planner.search.memory import cannot_fit
from planner.search.paths import ShapePaths, even_counts, in_class
from planner.search.solve import ROUNDS, MeshAnswer, Outcome
from planner.search.space import Space, enumerate_space
from planner.specs.table import BLOCK, StageCosts

NO_FIT = "memory: no split can fit"
BY_BOUND = "bound above the best"
BY_PATHS = "path bound above the best"
BY_SOLVER = "solver: no split beats the best"
PROGRESS_PERIOD = 0.1
"""Shortest time between two reports of progress. [s]"""
RUNNER_UP_TRIES = 250
"""Candidates looked at for runners-up once the best is proven. [1]"""


@dataclass(frozen=True)
class Progress:
    """Where a search stands."""

    candidates_left: int
    candidates: int
    incumbent_s: float | None
    bound_s: float | None

    @property
    def gap(self) -> float | None:
        """Share by which the incumbent may still be beaten. [1]."""
        if self.incumbent_s is None or self.bound_s is None:
            return None
        return max(0.0, 1.0 - self.bound_s / self.incumbent_s)


@dataclass(frozen=True)
class SearchOutcome:
    """Everything that a search of one framework's space found and proved."""

    table: CostTable
    space: Space
    ranked: list[Found]
    bound_s: float
    """No candidate is faster. [s]"""
    timed_out: bool
    pruned: dict[str, int]
    solved: int
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether the best plan meets the bound."""
        return bool(self.ranked) and self.bound_s >= self.ranked[0].step_s


class BestFirst:
    """Visits candidates by lower bound, refining it, until none can matter."""

    def __init__(
        self,
        workload: Workload,
        *,
        top: int,
        deadline: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.started = time.monotonic()
        self.deadline = deadline
        self.progress = progress
        self.reported = 0.0
        self.space = enumerate_space(workload)
        self.table = fill_table(workload, self.space.meshes, self.space.recompute)
        bounds = space_bounds(self.table, self.space)
        fits = np.flatnonzero(bounds.fits)
        self.order = fits[np.argsort(bounds.step[fits], kind="stable")]
        self.bounds = bounds.step
        self.at = 0
        self.refined: list[tuple[float, int]] = []
        self.work: dict[int, CandidateWork] = {}
        self.incumbents = Incumbents(top)
        self.paths = ShapePaths()
        self.counted: Counter[str] = Counter(self.space.removed)
        self.counted[NO_FIT] += len(self.space) - len(fits)
        self.solved = 0
        self.open_bound = float("inf")
        self.timed_out = False

    def run(self) -> SearchOutcome:
        """Visit candidates until the best is proven and the list is full.

        Returns:
            The best plans, the bound, and what removed all others.
        """
        extra = 0
        for bound, candidate, fresh in self._next():
            best = self.incumbents.best
            if best is not None and bound > best.step_s:
                extra += 1
                if extra > RUNNER_UP_TRIES:
                    self._put_back(bound, candidate, fresh=fresh)
                    break
            if time.monotonic() > self.deadline:
                self._put_back(bound, candidate, fresh=fresh)
                self.timed_out = True
                break
            self._report(bound)
            if fresh:
                self._refine(candidate)
            else:
                self._solve(candidate, bound)
        return self._outcome()

    def _next(self) -> Iterator[tuple[float, int, bool]]:
        """Candidates by bound, unrefined and refined ones merged."""
        while True:
            first = self._first_bound()
            heap = self.refined[0][0] if self.refined else float("inf")
            bound = min(first, heap)
            if bound == float("inf") or bound > self.incumbents.threshold():
                return
            if heap <= first:
                bound, candidate = heapq.heappop(self.refined)
                yield bound, candidate, False
            else:
                self.at += 1
                yield first, int(self.order[self.at - 1]), True

    def _put_back(self, bound: float, candidate: int, *, fresh: bool) -> None:
        """Undo the last step of :meth:`_next`."""
        if fresh:
            self.at -= 1
        else:
            heapq.heappush(self.refined, (bound, candidate))

    def _first_bound(self) -> float:
        if self.at >= len(self.order):
            return float("inf")
        return float(self.bounds[self.order[self.at]])

    def _costs(self, candidate: int) -> StageCosts:
        return self.table.stage_costs(
            int(self.space.mesh[candidate]),
            schedule=self.space.schedule(candidate),
            vpp=int(self.space.vpp[candidate]),
            menu=self.space.choices(candidate),
        )

    def _key(self, candidate: int) -> tuple[int, ...]:
        row = int(self.space.mesh[candidate])
        return degrees(self.space.meshes, row, int(self.space.menu[candidate]))

    def _slowdown(self, candidate: int) -> float:
        return float(self.table.slowdown[self.space.mesh[candidate]])

    def _matters(self, candidate: int, bound: float, rule: str) -> bool:
        """Whether a candidate can still change the list; counts it if not."""
        if bound <= self.incumbents.threshold(self._key(candidate)):
            return True
        self.counted[rule] += 1
        return False

    def _refine(self, candidate: int) -> None:
        """Second tier: memory by rank, then path bounds."""
        first = float(self.bounds[candidate])
        if not self._matters(candidate, first, BY_BOUND):
            return
        costs = self._costs(candidate)
        if cannot_fit(costs):
            self.counted[NO_FIT] += 1
            return
        limit = self.incumbents.threshold(self._key(candidate))
        enough = self._nanoseconds(limit, candidate)
        work = CandidateWork(costs, relax(costs, enough, self.paths))
        self.work[candidate] = work
        self._push(candidate, work.bound)
        self._try_even(candidate, work)

    def _nanoseconds(self, step_s: float, candidate: int) -> int | None:
        """A step as the simulator counts it, before the straggler factor. [ns]."""
        if step_s == float("inf"):
            return None
        return int(step_s / self._slowdown(candidate) * 1e9) + 1

    def _try_even(self, candidate: int, work: CandidateWork) -> None:
        """An incumbent for the price of one simulation."""
        for entry in range(len(work.costs.menu)):
            counts = even_counts(work.costs, entry)
            if in_class(work.costs, counts) and fits(work.costs, counts):
                value = step_ns(work.costs, counts)
                answer = MeshAnswer(Outcome.OPEN, work.bound, value, counts)
                self._record(candidate, work.costs, answer)
                return

    def _push(self, candidate: int, bound: int) -> None:
        """Put a candidate back with a better bound [ns]."""
        seconds = max(
            bound * self._slowdown(candidate) / 1e9, float(self.bounds[candidate])
        )
        heapq.heappush(self.refined, (seconds, candidate))

    def _solve(self, candidate: int, bound: float) -> None:
        """Third tier: best path weights once, then rounds of the solver."""
        work = self.work[candidate]
        if not self._matters(candidate, bound, BY_PATHS):
            del self.work[candidate]
        elif work.tightens():
            self._push(candidate, work.tighten())
        else:
            self._advance(candidate, work)

    def _advance(self, candidate: int, work: CandidateWork) -> None:
        """One round of the solver; back in the queue while it is open."""
        limit = self.incumbents.threshold(self._key(candidate))
        cutoff = self._nanoseconds(limit, candidate)
        self.solved += work.solver is None
        answer = work.advance(cutoff)
        self._record(candidate, work.costs, answer)
        if answer.outcome is Outcome.OPEN and answer.rounds < ROUNDS:
            self._push(candidate, answer.bound)
            return
        del self.work[candidate]
        if answer.outcome is Outcome.OPEN:
            seconds = answer.bound * self._slowdown(candidate) / 1e9
            self.open_bound = min(self.open_bound, seconds)

    def _record(self, candidate: int, costs: StageCosts, answer: MeshAnswer) -> None:
        slowdown = self._slowdown(candidate)
        if answer.outcome is Outcome.INFEASIBLE:
            self.counted[NO_FIT] += 1
        if answer.outcome is Outcome.CUT_OFF:
            self.counted[BY_SOLVER] += 1
        if answer.value is None or answer.counts is None:
            return
        found = Found(
            step_s=answer.value * slowdown / 1e9,
            device_bytes=self.device_bytes(candidate, costs, answer),
            fields=self._fields(candidate),
            candidate=candidate,
            counts=answer.counts,
        )
        self.incumbents.add(self._key(candidate), found)

    def _fields(self, candidate: int) -> tuple[int, ...]:
        """Fields of the layout in their order, for the last tie-break."""
        m, row = self.space.meshes, self.space.mesh[candidate]
        columns = (
            m.tp,
            m.sp,
            m.pp,
            m.cp,
            m.cp_kind,
            m.ep,
            m.etp,
            m.dp,
            m.dp_shard,
            m.zero,
            m.micro_batch,
            m.order,
        )
        inner = int(self.space.vpp[candidate]), int(self.space.menu[candidate])
        return (*(int(column[row]) for column in columns), *inner)

    def device_bytes(
        self, candidate: int, costs: StageCosts, answer: MeshAnswer
    ) -> float:
        """Device memory of a candidate's heaviest rank.

        Args:
            candidate: Index into the space. [1]
            costs: Its inner problem.
            answer: Its split.

        Returns:
            Memory. [B]
        """
        assert answer.counts is not None
        row = self.space.meshes.take(self.space.mesh[candidate : candidate + 1])
        workload = self.table.workload
        held = int(rank_blocks(costs, answer.counts).max()) * BLOCK
        buffers = float(buffer_bytes(workload, row)[0])
        fixed = float(communication_bytes(workload, row)[0]) + context_bytes(workload)
        return device_bytes(workload, held + buffers, fixed)

    def _lower_bound(self) -> float:
        """No candidate, visited or not, is faster."""
        best = self.incumbents.best
        waiting = self.refined[0][0] if self.refined else float("inf")
        value = best.step_s if best is not None else float("inf")
        return min(value, waiting, self._first_bound(), self.open_bound)

    def _report(self, bound: float) -> None:
        now = time.monotonic()
        if self.progress is None or now - self.reported < PROGRESS_PERIOD:
            return
        self.reported = now
        best = self.incumbents.best
        left = len(self.order) - self.at + len(self.refined)
        value = best.step_s if best is not None else None
        shown = min(bound, value) if value is not None else bound
        self.progress(Progress(left, len(self.space), value, shown))

    def _outcome(self) -> SearchOutcome:
        left = len(self.order) - self.at + len(self.refined)
        rule = "not visited: time limit" if self.timed_out else BY_BOUND
        self.counted[rule] += left
        return SearchOutcome(
            table=self.table,
            space=self.space,
            ranked=self.incumbents.ranked(),
            bound_s=self._lower_bound(),
            timed_out=self.timed_out,
            pruned={rule: n for rule, n in sorted(self.counted.items()) if n},
            solved=self.solved,
            seconds=time.monotonic() - self.started,
        )


def search(
    workload: Workload,
    *,
    top: int = 4,
    time_limit: float = 120.0,
    progress: Callable[[Progress], None] | None = None,
) -> SearchOutcome:
    """Find the fastest plan of the declared space that fits, with a proof.

    Args:
        workload: The job.
        top: Plans to list, each of other degrees. [1]
        time_limit: Wall time after which the incumbent is returned. [s]
        progress: Called about ten times a second.

    Returns:
        The plans, the bound, and the rule that removed every other candidate.
    """
    deadline = time.monotonic() + time_limit
    return BestFirst(workload, top=top, deadline=deadline, progress=progress).run()

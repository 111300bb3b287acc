"""Best-first over all candidates: the proof that nothing better was left out."""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from planner.cost.mixed import heaviest_bytes, price_meshes
from planner.cost.workload import Workload
from planner.search.bounds import Relaxation, relax, space_bounds
from planner.search.candidate import CandidateWork
from planner.search.incumbents import (
    Found,
    Incumbents,
    degrees,
    layout_fields,
)
from planner.search.memory import cannot_fit
from planner.search.outcome import Progress, SearchOutcome
from planner.search.paths import ShapePaths
from planner.search.pools import pooled_bound
from planner.search.solve import MeshAnswer, Outcome, settle
from planner.search.space import enumerate_space
from planner.specs.table import StageCosts

__all__ = ["Progress", "SearchOutcome", "search", "search_all"]

NO_FIT = "memory: no split can fit"
BY_BOUND = "bound above the best"
BY_PATHS = "path bound above the best"
BY_SOLVER = "solver: no split beats the best"
PROGRESS_PERIOD = 0.1
"""Shortest time between two reports of progress. [s]"""
RUNNER_UP_TRIES = 250
"""Candidates looked at for runners-up once the best is proven. [1]"""
NEAR = 0.1
"""Plans that are so much slower than the best are handed over beside the list. [1]"""


class BestFirst:
    """The candidates of one variant by lower bound, refined as they are visited."""

    def __init__(
        self, workload: Workload, incumbents: Incumbents, variant: int = 0
    ) -> None:
        self.seconds = 0.0
        self.incumbents, self.variant = incumbents, variant
        self.refined: list[tuple[float, int]] = []
        self.work: dict[int, CandidateWork] = {}
        self.twins: dict[tuple[StageCosts, tuple[int, ...]], CandidateWork] = {}
        self.paths = ShapePaths()
        self.solved, self.at = 0, 0
        self.open_bound = float("inf")
        self.timed_out = False
        with self._clocked():
            self._list_candidates(workload)

    def _list_candidates(self, workload: Workload) -> None:
        """First tier: enumerate, price and bound the whole space."""
        self.space = enumerate_space(workload)
        self.table = price_meshes(workload, self.space.meshes, self.space.recompute)
        bounds = space_bounds(self.table, self.space)
        fits = np.flatnonzero(bounds.fits)
        self.bounds = np.maximum(bounds.step, pooled_bound(self.table, self.space))
        self.order = fits[np.argsort(self.bounds[fits], kind="stable")]
        self.counted: Counter[str] = Counter(self.space.removed)
        self.counted[NO_FIT] += len(self.space) - len(fits)

    @contextmanager
    def _clocked(self) -> Iterator[None]:
        """Adds the wall time of a block to this variant's own."""
        started = time.monotonic()
        yield
        self.seconds += time.monotonic() - started

    @property
    def left(self) -> int:
        """Candidates that are not settled. [1]."""
        return len(self.order) - self.at + len(self.refined)

    def next_bound(self) -> float:
        """No candidate that is still to be visited is faster; inf without any. [s]."""
        return min(self._first_bound(), self._refined_bound())

    def visit(self) -> None:
        """Settle, or bound better, the candidate with the least bound."""
        with self._clocked():
            if self._refined_bound() <= self._first_bound():
                self._solve(*self._pick())
            else:
                self.at += 1
                self._refine(int(self.order[self.at - 1]))

    def _refined_bound(self) -> float:
        return self.refined[0][0] if self.refined else float("inf")

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
            hosting=self.space.hosting(candidate),
            block=self.space.block(candidate),
        )

    def _key(self, candidate: int) -> tuple[int, ...]:
        row, menu = int(self.space.mesh[candidate]), int(self.space.menu[candidate])
        return (self.variant, *degrees(self.space.meshes, row, menu))

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
        if costs.block:
            self._record(candidate, costs, settle(costs))
            return
        limit = self.incumbents.threshold(self._key(candidate))
        enough = self._nanoseconds(limit, candidate)
        hopeless = self._nanoseconds(self.incumbents.threshold(), candidate)
        relaxed = relax(costs, enough, self.paths, hopeless=hopeless)
        if self._push(candidate, relaxed.bound) <= limit:
            self.work[candidate] = self._begin(candidate, costs, relaxed)
            self._record(candidate, costs, self.work[candidate].last)

    def _begin(
        self, candidate: int, costs: StageCosts, relaxed: Relaxation
    ) -> CandidateWork:
        """The work on a candidate: that of one with the same costs, where known.

        Candidates of the same degrees whose inner problems are equal, as those of
        two rank orders that see the same links, have the same splits and steps.
        """
        key = costs, self._key(candidate)
        if key not in self.twins:
            self.twins[key] = CandidateWork(costs, relaxed, self.paths)
        return self.twins[key]

    def _nanoseconds(self, step_s: float, candidate: int) -> int | None:
        """A step as the simulator counts it, before the straggler factor. [ns]."""
        if step_s == float("inf"):
            return None
        return int(step_s / self._slowdown(candidate) * 1e9) + 1

    def _push(self, candidate: int, bound: int) -> float:
        """Put a candidate back with a better bound [ns]; the same with slowdown. [s].

        The threshold only falls: a bound above it needs neither its costs nor an
        incumbent any more.
        """
        seconds = self._seconds(candidate, bound)
        heapq.heappush(self.refined, (seconds, candidate))
        return seconds

    def _seconds(self, candidate: int, bound: int) -> float:
        """A bound with slowdown, and no less than that of the first tier. [s]."""
        whole = bound * self._slowdown(candidate) / 1e9
        return max(whole, float(self.bounds[candidate]))

    def _pick(self) -> tuple[float, int]:
        """Take the least bound off the queue, or the least that needs no solver yet.

        A solver's rounds take long: first every candidate that may beat the best
        plan has had its other steps, which may find a better one.
        """
        entry, best = self.refined[0], self.incumbents.best
        if best is not None and self._at_solver(entry[1]):
            left = (e for e in self.refined if not self._at_solver(e[1]))
            entry = min((e for e in left if e[0] < best.step_s), default=entry)
        self.refined.remove(entry)
        heapq.heapify(self.refined)
        return entry

    def _at_solver(self, candidate: int) -> bool:
        return candidate in self.work and self.work[candidate].at_solver

    def _solve(self, bound: float, candidate: int) -> None:
        """Third tier: what the candidate has next; back in the queue while open."""
        if not self._matters(candidate, bound, BY_PATHS):
            self.work.pop(candidate, None)
            return
        work = self.work[candidate]
        seen = work.solver is not None
        if work.open and self._seconds(candidate, work.bound) <= bound:
            limit = self.incumbents.threshold(self._key(candidate))
            work.advance(self._nanoseconds(limit, candidate))
        self.solved += work.solver is not None and not seen
        answer = work.last
        self._record(candidate, work.costs, answer)
        if work.open:
            self._push(candidate, answer.bound)
            return
        del self.work[candidate]
        if answer.outcome is Outcome.OPEN:
            seconds = self._seconds(candidate, answer.bound)
            self.open_bound = min(self.open_bound, seconds)

    def _record(self, candidate: int, costs: StageCosts, answer: MeshAnswer) -> None:
        """Count what an answer rules out; list its plan where that changes the list."""
        if answer.outcome is Outcome.INFEASIBLE:
            self.counted[NO_FIT] += 1
        if answer.outcome is Outcome.CUT_OFF:
            self.counted[BY_SOLVER] += 1
        if answer.value is None or answer.counts is None:
            return
        step_s = answer.value * self._slowdown(candidate) / 1e9
        if step_s > self.incumbents.threshold(self._key(candidate)):
            return
        row = int(self.space.mesh[candidate])
        found = Found(
            step_s=step_s,
            device_bytes=heaviest_bytes(self.table, row, costs, answer.counts),
            fields=layout_fields(self.space, candidate),
            variant=self.variant,
            candidate=candidate,
            counts=answer.counts,
        )
        self.incumbents.add(self._key(candidate), found)

    def lower_bound(self) -> float:
        """No candidate of this variant, visited or not, is faster. [s]."""
        best = self.incumbents.best
        value = best.step_s if best is not None else self.incumbents.known_s
        return min(value, self.next_bound(), self.open_bound)

    def outcome(self) -> SearchOutcome:
        """What was found and proved.

        Returns:
            The listed plans of this variant, its bound, and what removed the rest.
        """
        rule = "not visited: time limit" if self.timed_out else BY_BOUND
        counted = self.counted + Counter({rule: self.left})
        ranked = self.incumbents.ranked()
        return SearchOutcome(
            table=self.table,
            space=self.space,
            ranked=[found for found in ranked if found.variant == self.variant],
            bound_s=self.lower_bound(),
            timed_out=self.timed_out,
            pruned={rule: n for rule, n in sorted(counted.items()) if n},
            solved=self.solved,
            seconds=self.seconds,
            known_s=self.incumbents.known_s,
            near=[f for f in self.incumbents.within(NEAR) if f.variant == self.variant],
        )


class Together:
    """Visits the candidates of all variants in one order, by lower bound.

    The plans found in one variant are the incumbents of all, so a variant whose
    bound lies above them is never refined.
    """

    def __init__(
        self,
        workloads: Sequence[Workload],
        *,
        top: int,
        time_limit: float,
        known_s: float = float("inf"),
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.started = time.monotonic()
        self.deadline = self.started + time_limit
        self.progress, self.reported = progress, 0.0
        self.shown: float | None = None
        self.incumbents = Incumbents(top, known_s)
        self.searches = [
            BestFirst(workload, self.incumbents, index)
            for index, workload in enumerate(workloads)
        ]

    def run(self) -> list[SearchOutcome]:
        """Visit candidates until the best is proven and the list is full.

        Returns:
            The outcome of every variant.
        """
        extra = 0
        while self._may_matter(least := self._first()):
            extra += self._is_runner_up(least)
            if extra > RUNNER_UP_TRIES:
                break
            if time.monotonic() > self.deadline:
                self._stop()
                break
            self._report(least.next_bound())
            least.visit()
        return [search.outcome() for search in self.searches]

    def _first(self) -> BestFirst:
        """The variant with the least bound, the first of equals."""
        return min(self.searches, key=BestFirst.next_bound)

    def _may_matter(self, search: BestFirst) -> bool:
        bound = search.next_bound()
        return bound < float("inf") and bound <= self.incumbents.threshold()

    def _is_runner_up(self, search: BestFirst) -> bool:
        best = self.incumbents.best
        return best is not None and search.next_bound() > best.step_s

    def _stop(self) -> None:
        """The time is over: say which variants are not done."""
        for search in self.searches:
            search.timed_out = self._may_matter(search)

    def _report(self, bound: float) -> None:
        now = time.monotonic()
        best = self.incumbents.best
        value = best.step_s if best is not None else None
        early = now - self.reported < PROGRESS_PERIOD and value == self.shown
        if self.progress is None or early:
            return
        self.reported, self.shown = now, value
        shown = min(bound, value) if value is not None else bound
        left = sum(search.left for search in self.searches)
        candidates = sum(len(search.space) for search in self.searches)
        self.progress(Progress(left, candidates, value, shown, now - self.started))


def search_all(
    workloads: Sequence[Workload],
    *,
    top: int = 4,
    time_limit: float = 120.0,
    known_s: float = float("inf"),
    progress: Callable[[Progress], None] | None = None,
) -> list[SearchOutcome]:
    """Find the fastest plans over the spaces of several variants, with a proof.

    Args:
        workloads: The variants of a job; earlier ones win what nothing else
            decides. [-], shape (variants,)
        top: Plans to list over all variants, each of other degrees. [1]
        time_limit: Wall time after which the incumbents are returned; the first
            tier of every variant runs whatever it says. [s]
        known_s: A step that is reachable already; slower plans are not sought, and
            no bound is above it. [s]
        progress: Called about ten times a second.

    Returns:
        Of each variant its listed plans, its bound, and what removed the rest;
        the least bound holds over all. [-], shape (variants,)
    """
    return Together(
        workloads, top=top, time_limit=time_limit, known_s=known_s, progress=progress
    ).run()


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
    (outcome,) = search_all(
        [workload], top=top, time_limit=time_limit, progress=progress
    )
    return outcome

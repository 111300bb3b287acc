"""Best-first over all candidates: the proof that nothing better was left out."""

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.cost.pricing import Pricing
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.bounds.paths import ShapePaths
from planner.search.first_tier import Family
from planner.search.incumbents import Incumbents
from planner.search.outcome import (
    CLOSE_ENOUGH,
    FAST_ENOUGH,
    PROOF,
    Enough,
    Progress,
    SearchOutcome,
)
from planner.search.solver.ahead import ahead_of
from planner.search.stop import Stop, after
from planner.search.variant import NOT_VISITED, OUT_OF_WORK, BestFirst
from planner.search.warm_start import parts_of, pilots_of

__all__ = ["Enough", "Progress", "SearchOutcome", "search", "search_all"]

PROGRESS_PERIOD = 0.1
"""Shortest time between two reports of progress. [s]"""
RUNNER_UP_WORK = 250
"""Most work on runners-up once the best plan is proven. [1]

Without the solver where as many plans are listed as were asked for.
"""
CLOSE = 0.05
"""Gap at which the search of a part of a space ends. [1]"""
ROUGH = 0.3
"""Gap at which the search of a pilot ends. [1]"""
FOR_A_PART = 0.5
"""Share of the time that the search of a part may take. [1]"""
FOR_LISTING = 0.75
"""Share of the remaining time for listing and pricing; the rest is for visits. [1]"""


class VariantSearch:
    """Visits the candidates of all variants in one order, by lower bound.

    Plans of any variant are incumbents for all variants. So a variant whose bound
    lies above the incumbents is never refined. Paths, multipliers and boxes of one
    variant serve all: a shape has one graph, whatever its prices.
    """

    def __init__(
        self,
        workloads: Sequence[Pricing],
        *,
        stop: Stop,
        incumbents: Incumbents,
        progress: Callable[[Progress], None] | None,
        first: int = 0,
        enough: Enough = PROOF,
        known: KnownBounds | None = None,
        paths: ShapePaths | None = None,
    ) -> None:
        paths = paths or ShapePaths()
        self.stop, self.enough = stop, enough
        self.progress, self.reported = progress, 0.0
        self.shown: float | None = None
        self.incumbents, self.of_a_part = incumbents, first > 0
        early = stop.within(FOR_LISTING * stop.left)
        family, made = Family(), dict[int, BestFirst]()
        for at in _by_family(workloads):
            made[at] = BestFirst(
                workloads[at],
                self.incumbents,
                first + at,
                stop,
                early,
                known,
                paths,
                family,
            )
        self.searches = [made[at] for at in sorted(made)]
        self.unseen_s = min(search.unseen_s for search in self.searches)
        self.queue = [(each.next_bound(), at) for at, each in enumerate(self.searches)]
        heapq.heapify(self.queue)

    def run(self, gap: float = 0.0) -> list[SearchOutcome]:
        """Visit candidates until the best is proven and the list is full.

        Args:
            gap: Gap at which the search ends once the list is full; 0 asks for the
                proof and for runners-up. [1]
        """
        extra = 0
        while self._may_matter(least := self._first()):
            beyond = self._is_runner_up(least)
            if beyond and extra > RUNNER_UP_WORK:
                break
            if self._is_close(least.next_bound(), gap):
                self._stop(CLOSE_ENOUGH)
                break
            if why := self._ended():
                self._stop(why)
                break
            self._report(least.next_bound())
            work = least.visit(cheaply=beyond and self.incumbents.is_full)
            extra += work if beyond else 0
        return [search.outcome() for search in self.searches]

    def _first(self) -> BestFirst:
        """The variant with the least bound, the first of equals.

        A visit changes the bound of its own variant alone, which was the first.
        """
        at = self.queue[0][1]
        heapq.heapreplace(self.queue, (self.searches[at].next_bound(), at))
        return self.searches[self.queue[0][1]]

    def _may_matter(self, search: BestFirst) -> bool:
        bound = search.next_bound()
        return bound < float("inf") and bound <= self.incumbents.threshold()

    def _is_runner_up(self, search: BestFirst) -> bool:
        best = self.incumbents.best
        return best is not None and search.next_bound() > best.step_s

    def _is_close(self, bound: float, gap: float) -> bool:
        """Tell if the best plan is good enough, and the list full where it counts.

        The list of a part of a space may stay short: filling the list may take long
        where few candidates fit.
        """
        best = self.incumbents.best
        if not gap or best is None or not (self.incumbents.is_full or self.of_a_part):
            return False
        return bound >= best.step_s * (1 - gap)

    def _ended(self) -> str:
        """Rule of the limit that is reached; empty while none is. [text]."""
        best = self.incumbents.best
        if best is not None and best.step_s <= self.enough.step_s:
            return FAST_ENOUGH
        if sum(search.worked for search in self.searches) > self.enough.work:
            return OUT_OF_WORK
        return NOT_VISITED + self.stop.why if self.stop.reached else ""

    def _stop(self, why: str) -> None:
        """Note the reason to stop in every variant that is not done."""
        for search in self.searches:
            search.stopped = why if self._may_matter(search) else ""

    def _report(self, bound: float) -> None:
        now = time.monotonic()
        best = self.incumbents.best_s
        value = best if best < float("inf") else None
        early = now - self.reported < PROGRESS_PERIOD and value == self.shown
        if self.progress is None or early:
            return
        self.reported, self.shown = now, value
        bound_s = None if self.of_a_part else min(bound, best, self.unseen_s)
        left = sum(search.left for search in self.searches)
        candidates = sum(sum(search.declared.values()) for search in self.searches)
        self.progress(Progress(left, candidates, value, bound_s))


def _by_family(workloads: Sequence[Pricing]) -> list[int]:
    """Variants, those on few pools first, on the same pools one after the other. [1].

    Several pools may have more candidates than there is time to list.
    """
    pools = [sorted(pool.name for pool in each.stage_pools) for each in workloads]
    return sorted(range(len(workloads)), key=lambda at: (len(pools[at]), pools[at]))


def search_all(
    workloads: Sequence[Pricing],
    *,
    top: int = 4,
    time_limit: float = 120.0,
    known_s: float = float("inf"),
    tolerance: float = 0.0,
    enough: Enough = PROOF,
    progress: Callable[[Progress], None] | None = None,
    stop: Stop | None = None,
    known: KnownBounds | None = None,
) -> list[SearchOutcome]:
    """Find the fastest plans over the spaces of several variants, with a proof.

    Args:
        workloads: The variants of a job; earlier ones win what nothing else
            decides. [-], shape (variants,)
        top: Plans to list over all variants, each with different degrees. [1]
        time_limit: Wall time after which the incumbents are returned, listing and
            pricing included. [s]
        known_s: A step that is known to be reachable; slower plans are not sought,
            and no bound is above it. [s]
        tolerance: Gap at which the search stops once the list is full; 0 asks for
            the proof. [1]
        enough: Work after which the incumbents are returned, and a step that needs no
            proof. The first tier of every variant always runs. [-]
        progress: Called about ten times a second.
        stop: Ends the search, in place of the time limit. [-]
        known: Bounds and paths from earlier searches of the job, to which new ones are
            added.

    Returns:
        Listed plans and bound of each variant, and what removed the rest. The least
        bound holds over all variants. [-], shape (variants,). Outcomes of parts
        follow, with their variants, where the whole spaces gave no plan as fast.
    """
    stop = stop or after(time_limit)
    with ahead_of(stop):
        return _searched(
            workloads, top, stop, known_s, tolerance, enough, progress, known
        )


def _searched(
    workloads: Sequence[Pricing],
    top: int,
    stop: Stop,
    known_s: float,
    tolerance: float,
    enough: Enough,
    progress: Callable[[Progress], None] | None,
    known: KnownBounds | None,
) -> list[SearchOutcome]:
    """The outcome of every variant; parts of large spaces are searched before."""
    paths = ShapePaths() if known is None else known.paths
    rough, before = _rough(
        workloads, top, stop, known_s, enough, progress, paths, known
    )
    worked = sum(outcome.worked for outcome in rough)
    full = bool(parts_of(workloads))
    incumbents = Incumbents(top, known_s, before if full else None)
    incumbents.before_s = before.best_s if before else float("inf")
    first, *others = VariantSearch(
        workloads,
        stop=stop,
        incumbents=incumbents,
        progress=progress,
        enough=replace(enough, work=enough.work - worked),
        known=known,
        paths=paths,
    ).run(tolerance)
    spent = sum(outcome.seconds for outcome in rough)
    whole = replace(first, seconds=first.seconds + spent, worked=first.worked + worked)
    outcomes = [whole, *others]
    if incumbents.best is None or incumbents.best.step_s > incumbents.before_s:
        outcomes += [
            replace(one, rough=True, declared={}, seconds=0.0, worked=0.0)
            for one in rough
        ]
    return outcomes


def _rough(
    workloads: Sequence[Pricing],
    top: int,
    stop: Stop,
    known_s: float,
    enough: Enough,
    progress: Callable[[Progress], None] | None,
    paths: ShapePaths,
    known: KnownBounds | None,
) -> tuple[list[SearchOutcome], Incumbents | None]:
    """Search parts of large spaces, each larger than the last.

    The plans of a part remain where time ends. They rule out most candidates of a
    larger part.
    """
    rough: list[SearchOutcome] = []
    before: Incumbents | None = None
    time_s = stop.left if enough.work == float("inf") else 0.0
    stages = ((pilots_of(workloads, time_s), ROUGH), (parts_of(workloads), CLOSE))
    for parts, gap in stages if known_s == float("inf") else ():
        if not parts:
            continue
        incumbents = Incumbents(top, known_s, before)
        worked = sum(outcome.worked for outcome in rough)
        rough += VariantSearch(
            parts,
            stop=stop.within(FOR_A_PART * stop.left),
            incumbents=incumbents,
            progress=progress,
            first=len(workloads) + len(rough),
            enough=replace(enough, work=enough.work - worked),
            known=known,
            paths=paths,
        ).run(gap)
        before = incumbents if incumbents.best is not None else before
    return rough, before


def search(
    pricing: Pricing,
    *,
    top: int = 4,
    time_limit: float = 120.0,
    progress: Callable[[Progress], None] | None = None,
) -> SearchOutcome:
    """Find the fastest plan of the declared space that fits, with a proof.

    Args:
        pricing: The job.
        top: Plans to list, each with different degrees. [1]
        time_limit: Wall time after which the incumbent is returned. [s]
        progress: Called about ten times a second.
    """
    return search_all([pricing], top=top, time_limit=time_limit, progress=progress)[0]

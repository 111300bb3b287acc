"""Simpler plans beside the fastest: the best without each of its axes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from planner.cost.estimate.estimate import estimate
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.variants import variants
from planner.planning.layouts import found_layout
from planner.planning.ties import (
    DATA,
    MOST_SLOWER,
    Contender,
    robust_choice,
    split_axes,
    tied,
)
from planner.search.best_first import search_all
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.outcome import Enough
from planner.search.stop import Stop
from planner.specs.layouts.axes import DEGREES

QUICK = Enough(work=100.0)
"""Work of the search without one axis. [visit]"""
ROUNDS = 3
"""Axes that are given up one after the other, at most. [1]"""
SPLITS = tuple(axis.name for axis in DEGREES if axis.name not in DATA)
"""Axes along which a job is split beside data and expert parallelism. [text]"""
PART = 0.5
"""Share of the time left that these searches may take. [1]"""


@dataclass
class Simpler:
    """Plans with fewer axes, and the axes that no plan does without."""

    plans: list[Contender]
    """Plans that are new and not much slower than the fastest. [-]"""
    chosen: Contender
    """The simplest of the plans that tie with the fastest. [-]"""
    missing: set[frozenset[str]] = field(default_factory=set)
    """Sets of axes along which no plan is worth its step, proven. [text]"""

    @property
    def needed(self) -> tuple[str, ...]:
        """Axes of the chosen plan that no fast plan does without, proven. [text]."""
        used = frozenset(split_axes(self.chosen.layout))
        every = (axis for axis in SPLITS if axis in used)
        return tuple(axis for axis in every if used - {axis} in self.missing)


def simpler(
    workloads: Sequence[Workload],
    contenders: Sequence[Contender],
    stop: Stop,
    known: KnownBounds,
) -> Simpler:
    """Plans with fewer axes than the simplest that ties with the fastest.

    A search of the whole space looks at no layout that cannot be the fastest. So the
    space without one axis of the simplest plan is searched, then without a second.
    """
    until, found = stop.within(PART * stop.left), list(contenders)
    worth = contenders[0].step_s * (1 + MOST_SLOWER)
    tried: set[frozenset[str]] = set()
    missing: set[frozenset[str]] = set()
    for _ in range(ROUNDS):
        simplest = found[robust_choice(found, tied(found))]
        for kept in _without_one(simplest, tried, until):
            new = _best_along(workloads, kept, worth, until, known)
            missing |= {kept} if new is None else set()
            fresh = (
                one for one in new or () if all(one.layout != x.layout for x in found)
            )
            found += list(fresh)
        if found[robust_choice(found, tied(found))] is simplest:
            break
    chosen = found[robust_choice(found, tied(found))]
    return Simpler(found[len(contenders) :], chosen, missing)


def _without_one(
    simplest: Contender, tried: set[frozenset[str]], stop: Stop
) -> Iterator[frozenset[str]]:
    """Sets of axes that are new, with one axis less than a plan. [text]."""
    used = frozenset(split_axes(simplest.layout))
    for kept in (used - {axis} for axis in sorted(used)):
        if stop.reached or kept in tried:
            continue
        tried.add(kept)
        yield kept


def _best_along(
    workloads: Sequence[Workload],
    axes: frozenset[str],
    worth_s: float,
    stop: Stop,
    known: KnownBounds,
) -> list[Contender] | None:
    """The best plan that splits along some axes alone, if it is worth its step.

    None where a proof says that no legal plan is.
    """
    narrow = [one for each in workloads if (one := _narrowed(each, axes)) is not None]
    try:
        its = variants(narrow) if narrow else ()
    except BadInputError:
        return []
    if not its:
        return []
    outcomes = search_all(
        its, top=1, known_s=worth_s, enough=QUICK, stop=stop, known=known
    )
    for plan in sorted(plan for outcome in outcomes for plan in outcome.ranked)[:1]:
        outcome = outcomes[plan.variant]
        layout, pricing = found_layout(outcome, plan), outcome.pricing
        # A plan keeps the limits that its job has, not those of this search.
        its_search = replace(pricing, search=workloads[0].search)
        return [Contender(its_search, layout, estimate(its_search, layout))]
    proven = min(outcome.bound_s for outcome in outcomes) >= worth_s
    legal = any(outcome.candidates for outcome in outcomes)
    return None if proven and legal else []


def _narrowed(workload: Workload, axes: frozenset[str]) -> Workload | None:
    """The job with all other axes at one; none where its limits rule that out."""
    search = workload.search
    others = [axis for axis in SPLITS if axis not in axes]
    if not all(search.allows(axis, 1) for axis in others):
        return None
    return replace(workload, search=search.model_copy(update=dict.fromkeys(others, 1)))

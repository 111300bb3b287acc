"""The first tier: a variant's space listed, priced and bounded part by part."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from planner.cost.meshes import Floats, Ints
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.search.bounds.bounds import space_bounds
from planner.search.bounds.deal_bounds import dealt_bound
from planner.search.bounds.floor import step_floor
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.bounds.pool_bounds import dealt_to_pools, pooled_bound
from planner.search.priced import FamilyPrices
from planner.search.space.declared import joined
from planner.search.space.listing import Listing
from planner.search.space.space import Enumerator, Space
from planner.search.spread import spread
from planner.search.stop import Stop, StoppedError

NO_FIT = "memory: no split can fit"
BY_BOUND = "bound above the best"
PART = 4096
"""Meshes that are priced at a time. [1]"""
PARALLEL_FROM = 25
"""Parts from which it pays to price them in several processes. [1]"""
WORKER_BYTES = 0.5e9
"""Memory of one pricing process, with the part that it prices. [B]"""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """Candidates left on some meshes, with bounds, and counts of the others."""

    space: Space
    """Candidates that may fit and be fast enough, on meshes of their own."""
    bounds: Floats
    """Lower bound on every plan of the candidate. [s], shape (candidates,)"""
    slowdown: Floats
    """Straggler factor. [1], shape (candidates,)"""
    counted: Counter[str]
    """Candidates and values that each rule removed. [1]"""
    declared: Counter[int]
    """Candidates of the declared space by the GPUs that they use. [1]"""


@dataclass(frozen=True)
class FirstTier:
    """Candidates with which a search starts, with bounds, and counts of the others."""

    space: Space
    """Candidates that may still matter; all others are counted."""
    bounds: Floats
    """Lower bound on every plan of the candidate. [s], shape (candidates,)"""
    slowdown: Floats
    """Straggler factor. [1], shape (candidates,)"""
    order: Ints
    """Candidates that may fit, by their bound. [1]"""
    counted: Counter[str]
    """Candidates and values that each rule removed. [1]"""
    declared: dict[int, int]
    """Candidates of the declared space by the GPUs that they use. [1]"""
    meshes: int
    """Meshes of the declared space. [1]"""
    unseen_s: float = float("inf")
    """Lower bound on candidates that were not listed, or not priced; inf where all
    were. [s]"""
    stopped: str = ""
    """Reason why some were not listed or not priced; empty where all were. [text]"""
    prices: FamilyPrices | None = None
    """Prices of the meshes, where other orders of the pools share them."""
    offset: "Floats | float" = 0.0
    """Part of the key that no step changes: a number for each candidate, or for all;
    see :class:`planner.specs.aim.Aim`. [s]"""


@dataclass
class _Gathered:
    """Parts of a space as they come."""

    parts: list[Part] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    declared: Counter[int] = field(default_factory=Counter)
    meshes: int = 0
    why: str = ""
    """Reason why some are missing; empty where none are. [text]"""

    def add(self, part: Part) -> None:
        """Keep what is left of a part, and count the rest."""
        self.counted.update(part.counted)
        self.declared.update(part.declared)
        if len(part.space) or not self.parts:
            self.parts.append(part)


class Family:
    """Candidates of the same pools in any order, kept for one order after the other."""

    def __init__(self) -> None:
        self.key: Pricing | None = None
        self.found = _Gathered()
        self.prices: FamilyPrices | None = None

    def of(
        self, pricing: Pricing, most: float, gather: Callable[[Pricing], _Gathered]
    ) -> _Gathered:
        """Candidates that may matter with the pools in one order.

        Args:
            pricing: The job on these pools in this order.
            most: Key above which no plan is wanted. [s]
            gather: Lists, prices and bounds the candidates, for all orders.
        """
        key = in_any_order(pricing)
        if key != self.key:
            self._forget()
        if key is None:
            return gather(pricing)
        if key != self.key:
            self.key, self.found = key, gather(key)
        found = replace(self.found, counted=self.found.counted.copy(), parts=[])
        if self.found.parts:
            part = _one(self.found.parts)
            self.prices = self.prices or FamilyPrices(key, part.space)
            found.add(_turned(pricing, part, self.prices, most))
        return found

    def _forget(self) -> None:
        """Drop the prices of the last family; candidates looked at are priced again."""
        if self.prices is not None:
            self.prices.forget()
        self.key, self.prices = None, None


def _one(parts: Sequence[Part]) -> Part:
    """Parts as one."""
    return Part(
        space=joined([part.space for part in parts]),
        bounds=np.concatenate([part.bounds for part in parts]),
        slowdown=np.concatenate([part.slowdown for part in parts]),
        counted=Counter(),
        declared=Counter(),
    )


def _turned(pricing: Pricing, part: Part, prices: FamilyPrices, most: float) -> Part:
    """Candidates that may matter with the pools in another order, on all meshes."""
    turn, table = prices.turn(pricing), prices.turned(pricing)
    own = part.space.hostings
    lie = {ranks: tuple(ranks[at] for at in turn) for ranks in set(own)}
    space = replace(part.space, hostings=tuple(lie[ranks] for ranks in own))
    bounds = np.maximum(part.bounds, dealt_to_pools(table, space))
    return _kept(table, space, bounds, np.isfinite(bounds), most)


def in_any_order(pricing: Pricing) -> Pricing | None:
    """The job on the same pools in the order of their names.

    Where all pools have the degrees of the first, no list, price or bound depends on
    the order, but how layers are dealt to ranks.

    Returns:
        The job; None where pools have degrees of their own, or there is one.
    """
    hosts = pricing.stage_pools
    if not pricing.pools or not pricing.mixed:
        return None
    if not all(pool.is_like_the_first for pool in hosts):
        return None
    ordered = tuple(sorted(hosts, key=lambda pool: pool.name))
    return pricing if ordered == hosts else replace(pricing, stage_pools=ordered)


def first_tier(
    pricing: Pricing,
    most: float,
    stop: Stop | None = None,
    known: KnownBounds | None = None,
    family: Family | None = None,
) -> FirstTier:
    """List a space, price it and bound every candidate, some meshes at a time.

    Candidates are kept that may fit and whose bound does not exceed a step known to be
    reachable. No other candidate can be the best. Parts are independent. So neither
    the number of parts nor the number of processes changes the result.

    Args:
        pricing: A variant of the job.
        most: Step above which no plan is wanted; inf keeps every candidate. [s]
        stop: Ends the work early. [-]
        known: Bounds from earlier searches of the job, to which new ones are added.
        family: Candidates of the same pools in other orders.

    Returns:
        Candidates that are left, their bounds, and what removed the others. Where the
        work ended early, also a bound on all candidates that were not looked at.
    """
    stop = stop or Stop()
    family = family or Family()
    found = family.of(pricing, most, lambda key: _gathered(key, most, stop, known))
    tier = replace(_sorted(pricing, found), prices=family.prices)
    if not found.why:
        return tier
    return replace(tier, unseen_s=step_floor(pricing), stopped=found.why)


def _gathered(
    pricing: Pricing, most: float, stop: Stop, known: KnownBounds | None
) -> _Gathered:
    """The parts of a space, until it ends or a limit is reached."""
    found, enumerator = _Gathered(), Enumerator(pricing)
    try:
        stop.check()
        listing = enumerator.listing(stop=stop)
        found.counted.update(enumerator.removed)
        found.meshes = len(listing)
        for part in _priced_parts(listing, most, stop, known):
            found.add(part)
            stop.check()
    except StoppedError as error:
        found.why = str(error)
    return found


def _sorted(pricing: Pricing, found: _Gathered) -> FirstTier:
    """All parts as one space, with the candidates in the order of their bounds."""
    one = _one(found.parts or [_without(Enumerator(pricing).space([]))])
    return FirstTier(
        space=replace(one.space, removed={}),
        bounds=one.bounds,
        slowdown=one.slowdown,
        order=np.argsort(one.bounds, kind="stable"),
        counted=found.counted,
        declared=dict(sorted(found.declared.items())),
        meshes=found.meshes,
    )


def _without(space: Space) -> Part:
    """A part of which no candidate is left."""
    none = np.zeros(0)
    return Part(space, none, none, Counter(), Counter())


def _priced_parts(
    listing: Listing, most: float, stop: Stop, known: KnownBounds | None
) -> Iterator[Part]:
    """Every part of a space, on all cores where there are many."""
    slices = list(listing.slices(PART))
    if len(slices) >= PARALLEL_FROM:
        yield from _priced_at_once(listing, slices, most, stop)
    elif known is not None and most < float("inf"):
        yield from _priced_where_worth(listing, slices, most, known)
    else:
        yield from (priced_part(listing, some, most, known) for some in slices)


def _priced_where_worth(
    listing: Listing, slices: list[slice], most: float, known: KnownBounds
) -> Iterator[Part]:
    """Parts of the candidates that no known bound rules out: few, priced together."""
    pricing, left = listing.pricing, list[Space]()
    for some in slices:
        counted: Counter[str] = Counter()
        space = listing.part(some, counted)
        worth = known.of(pricing, space) <= _wanted(pricing, space, most)
        counted[BY_BOUND] += int(np.count_nonzero(~worth))
        kept = space.take(np.flatnonzero(worth)).on_own_meshes()
        none = space.take(np.zeros(0, dtype=np.int64)).on_own_meshes()
        yield replace(_without(none), counted=counted, declared=_declared(space))
        if sum(len(part.meshes) for part in left) + len(kept.meshes) > PART:
            yield _priced(pricing, joined(left), most, known)
            left = []
        if len(kept):
            left.append(kept)
    if left:
        yield _priced(pricing, joined(left), most, known)


def _priced_at_once(
    listing: Listing, slices: list[slice], most: float, stop: Stop
) -> Iterator[Part]:
    """Every part of a large space, each in a process as far as memory allows.

    Where a search is spread over a cluster its workers price the parts.
    """
    whole, elsewhere = slice(None), spread()
    if elsewhere is not None:
        parts = ((listing.only(some), whole, most) for some in slices)
        yield from elsewhere(priced_part, parts, stop)
        return
    # Few spaces are large, and joblib takes long to import.
    from joblib import cpu_count, delayed  # noqa: PLC0415

    from planner.search.processes import at_once  # noqa: PLC0415

    affordable = min(stop.memory / 2 / WORKER_BYTES, len(slices))
    jobs = min(cpu_count(), int(affordable))
    if jobs < 2:
        yield from (priced_part(listing, some, most) for some in slices)
        return
    work = (delayed(priced_part)(listing.only(s), whole, most) for s in slices)
    yield from at_once(work, jobs)


def priced_part(
    listing: Listing, some: slice, most: float, known: KnownBounds | None = None
) -> Part:
    """List the candidates on some meshes, price them, and keep those that may matter.

    Args:
        listing: Meshes of a variant of the job.
        some: A part of them.
        most: Key above which no plan is wanted: a step, or what the job aims at. [s]
        known: Bounds for further searches of the job, to which these are added.
    """
    counted: Counter[str] = Counter()
    space = listing.part(some, counted)
    part = _priced(listing.pricing, space, most, known)
    counted.update(part.counted)
    return replace(part, counted=counted, declared=_declared(space))


def _priced(
    pricing: Pricing, space: Space, most: float, known: KnownBounds | None = None
) -> Part:
    """Price candidates, and keep those that may matter; count the others."""
    table = price_meshes(pricing, space.meshes, space.recompute)
    bounds, fits = bounded(table, space)
    if known is not None:
        known.keep(pricing, space, bounds)
    if in_any_order(pricing) is None and (most < float("inf") or pricing.mixed):
        # Few are left to look at more closely; on several pools few of all fit.
        at = np.flatnonzero(fits & (bounds <= _wanted(pricing, space, most)))
        dealt = dealt_to_pools if pricing.mixed else dealt_bound
        bounds[at] = np.maximum(bounds[at], dealt(table, space.take(at)))
        fits[at] = np.isfinite(bounds[at])
    part = _kept(table, space, bounds, fits, most)
    return replace(part, space=part.space.on_own_meshes())


def _kept(
    table: CostTable, space: Space, bounds: Floats, fits: Bools, most: float
) -> Part:
    """Candidates that may fit and be fast enough, and counts of the others."""
    quick = bounds <= _wanted(table.pricing, space, most)
    left = np.flatnonzero(fits & quick)
    removed = {NO_FIT: ~fits, BY_BOUND: fits & ~quick}
    return Part(
        space=space.take(left),
        bounds=bounds[left],
        slowdown=table.slowdown[space.mesh[left]],
        counted=Counter(
            {rule: int(np.count_nonzero(removed[rule])) for rule in removed}
        ),
        declared=Counter(),
    )


def _wanted(pricing: Pricing, space: Space, most: float) -> Floats:
    """Step above which no plan of a candidate is wanted. [s]."""
    wanted: Floats = most / pricing.aim.factor(space.meshes.gpus[space.mesh])
    return wanted


def _declared(space: Space) -> Counter[int]:
    """Candidates by the GPUs that they use. [1]."""
    gpus = space.meshes.gpus[space.mesh]
    numbers, counts = np.unique(gpus, return_counts=True)
    return Counter(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))


def bounded(table: CostTable, space: Space) -> tuple[Floats, Bools]:
    """Bound every candidate on priced meshes.

    Returns:
        Bound [s] of every candidate, and True where it may fit. shape (candidates,)
    """
    bounds = space_bounds(table, space)
    slower = np.maximum(bounds.step, pooled_bound(table, space))
    return slower, bounds.fits.astype(np.bool_)

"""The first tier: a variant's space enumerated, priced, bounded and sorted."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from joblib import Parallel, cpu_count, delayed

from planner.cost.meshes import Floats, Ints
from planner.cost.mixed import price_meshes
from planner.cost.table import CostTable
from planner.cost.workload import Workload
from planner.search.bounds import space_bounds
from planner.search.pools import pooled_bound
from planner.search.space import Space, enumerate_space

NO_FIT = "memory: no split can fit"
BY_BOUND = "bound above the best"
PART = 50_000
"""Meshes that are priced at a time, where a plan is known that most cannot beat. [1]"""
PARALLEL_FROM = 4
"""Parts from which it pays to price them in several processes. [1]"""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FirstTier:
    """What a search starts from."""

    table: CostTable
    space: Space
    """The candidates that may still matter; every other one is counted."""
    bounds: Floats
    """No plan of the candidate is faster. [s], shape (candidates,)"""
    order: Ints
    """Candidates that may fit, by their bound. [1]"""
    counted: Counter[str]
    """Candidates and values that each rule removed. [1]"""
    declared: dict[int, int]
    """Candidates of the declared space by the GPUs that they use. [1]"""
    meshes: int
    """Meshes of the declared space, all of which are priced. [1]"""


def first_tier(workload: Workload, most: float) -> FirstTier:
    """Enumerate a space, price it and bound every candidate.

    Where a step is known that is reachable, a large space is priced in parts, and
    candidates whose bound is above it are counted and let go: none can be the best.
    The parts are independent, so their number and that of the processes that price
    them change nothing.

    Args:
        workload: A variant of the job.
        most: Step above which no plan is wanted; inf keeps every candidate. [s]

    Returns:
        Table, candidates that are left, their bounds and what removed the others.
    """
    space = enumerate_space(workload)
    declared, meshes = _by_gpus(space), len(space.meshes)
    counted = Counter(space.removed)
    large = len(space) > 0 and len(space.meshes) > PART and not workload.mixed
    if large and most < float("inf"):
        space = _kept(workload, space, most, counted)
    table = price_meshes(workload, space.meshes, space.recompute)
    bounds, may_fit = _bounded(table, space)
    fits = np.flatnonzero(may_fit)
    counted[NO_FIT] += len(space) - len(fits)
    return FirstTier(
        table=table,
        space=space,
        bounds=bounds,
        order=fits[np.argsort(bounds[fits], kind="stable")],
        counted=counted,
        declared=declared,
        meshes=meshes,
    )


def _by_gpus(space: Space) -> dict[int, int]:
    numbers, counts = np.unique(space.meshes.gpus[space.mesh], return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def _bounded(table: CostTable, space: Space) -> tuple[Floats, Bools]:
    """Bound [s] of every candidate, and whether it may fit."""
    bounds = space_bounds(table, space)
    slower = np.maximum(bounds.step, pooled_bound(table, space))
    return slower, bounds.fits.astype(np.bool_)


def _kept(
    workload: Workload, space: Space, most: float, counted: Counter[str]
) -> Space:
    """The candidates of a large space that may fit and beat a known step."""
    everyone, parts = zip(*_parts(space), strict=True)
    kept: list[Ints] = []
    priced = _priced(workload, list(parts))
    for candidates, (bounds, fits) in zip(everyone, priced, strict=True):
        quick = bounds <= most
        counted[NO_FIT] += int(np.count_nonzero(~fits))
        counted[BY_BOUND] += int(np.count_nonzero(fits & ~quick))
        kept.append(candidates[fits & quick])
    return _on_own_meshes(space.take(np.sort(np.concatenate(kept))))


def _parts(space: Space) -> Iterator[tuple[Ints, Space]]:
    """Candidates of so many meshes at a time, and a space of those alone."""
    part = space.mesh // PART
    for number in np.unique(part):
        candidates = np.flatnonzero(part == number)
        yield candidates, _on_own_meshes(space.take(candidates))


def _on_own_meshes(space: Space) -> Space:
    """The same candidates without the meshes that none of them is on."""
    rows, own = np.unique(space.mesh, return_inverse=True)
    return replace(space, meshes=space.meshes.take(rows), mesh=own)


def _priced(workload: Workload, parts: list[Space]) -> Iterable[tuple[Floats, Bools]]:
    """Bounds of every part, on all cores where there are many."""
    if len(parts) < PARALLEL_FROM or (cores := cpu_count()) == 1:
        return (part_bounds(workload, part) for part in parts)
    parallel = Parallel(n_jobs=min(cores, len(parts)), return_as="generator")
    priced: Iterable[tuple[Floats, Bools]] = parallel(
        delayed(part_bounds)(workload, part) for part in parts
    )
    return priced


def part_bounds(workload: Workload, space: Space) -> tuple[Floats, Bools]:
    """Price a part of a space.

    Args:
        workload: A variant of the job.
        space: Some candidates, on meshes of their own.

    Returns:
        Bound [s] of every candidate, and whether it may fit. shape (candidates,)
    """
    return _bounded(price_meshes(workload, space.meshes, space.recompute), space)

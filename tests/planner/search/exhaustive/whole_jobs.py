"""Random whole jobs: any small model on any small cluster, every axis open."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from axes_of_jobs import AXES, Draw, clusters, fleets, searched, with_pools
from brute_force import costs_of, oom_chance, plans_of, priced
from every_fleet import places
from every_mesh import AXES as MESH_AXES
from every_mesh import DEGREES
from every_plan import Choice, choices
from hypothesis import assume
from hypothesis import strategies as st
from strategies import small_job, with_profile

from planner.cost.memory.buffers import budget_bytes
from planner.cost.pipeline.memory_rows import rank_blocks
from planner.cost.pricing import Pricing
from planner.cost.table.table import CostTable
from planner.job.variants import variants
from planner.search.bounds.paths import even_counts
from planner.search.space.switches import with_and_without
from planner.specs.answer.uncertainty import Band
from planner.specs.search import SearchSpec

ONE_IN = 12
"""Of so many jobs one is on a mixed fleet, where such are drawn. [1]"""
NARROWED = [axis for axis in (*DEGREES, *MESH_AXES) if axis.limit]
"""Axes that a limit of the user narrows until brute force is cheap."""
CAP = 20_000
"""Complete plans above which a job is drawn again. [1]"""


@dataclass(frozen=True)
class Record:
    """Parts of a random job, so that it can be made again from data."""

    name: str
    """Framework. [text]"""
    drawn: dict[str, list[Any]]
    """Values that each axis drew, in their order. [-]"""
    limits: dict[str, Any]
    """Limits that narrow the space. [-]"""
    taken: float | None
    """Device memory that is taken from the plans; none where none is. [B]"""


@st.composite
def recorded_jobs(
    draw: st.DrawFn, name: str, most: int = CAP, one_in: int = 0
) -> tuple[Record, Pricing]:
    """A job of :func:`whole_jobs` with its record."""
    mixed = one_in > 0 and draw(st.integers(1, one_in)) == 1
    job, drawn = small_job(SearchSpec(), name=name), {}
    for change in (fleets if mixed else clusters, *AXES):
        values = drawn[change.__name__] = []
        job = change(lambda each, kept=values: _kept(kept, draw(each)), job)
    job = narrowed(draw, with_pools(job), most)
    names = [str(axis.limit) for axis in NARROWED]
    limits = {name: getattr(job.search, name) for name in names}
    taken = taken_room(draw, job)
    return Record(name, drawn, limits, taken), with_room(job, taken)


def _kept(values: list[Any], value: Any) -> Any:
    values.append(value)
    return value


def whole_jobs(
    name: str, most: int = CAP, one_in: int = 0
) -> st.SearchStrategy[Pricing]:
    """A job of a framework with at most so many complete plans over its variants.

    Memory is loose, tight or too little for any plan. One job in so many is on a
    mixed fleet; none without a number.
    """
    return recorded_jobs(name, most, one_in).map(lambda pair: pair[1])


def made_again(record: Record) -> Pricing:
    """The job of a record; an axis that is newer than the record changes nothing."""
    job = small_job(SearchSpec(), name=record.name)
    for change in (fleets, clusters, *AXES):
        if change.__name__ in record.drawn:
            values = iter(_frozen(record.drawn[change.__name__]))
            job = change(lambda _, told=values: next(told), job)
    limits = {name: _frozen(values) for name, values in record.limits.items()}
    return with_room(searched(with_pools(job), **limits), record.taken)


def _frozen(value: Any) -> Any:
    """Lists of JSON as the tuples that they were."""
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def everywhere(job: Pricing) -> list[Choice]:
    """Candidates of a job on every place for its stages, with any switches."""
    return [choice for place in switched_places(job) for choice in choices(place)]


def switched_places(job: Pricing) -> list[Pricing]:
    """A job on every place for its stages, with every setting of its switches."""
    return [its for place in places(job) for its in with_and_without(place)]


def narrowed(draw: Draw, job: Pricing, most: int) -> Pricing:
    """Limit one axis after the other, as a user would, until brute force is cheap."""
    settings = len(variants([job])) / len(switched_places(job))
    found, each = everywhere(job), max(int(most / settings), 1)
    for axis in draw(st.permutations(NARROWED)):
        if plans_of(job, found) <= each:
            break
        held = {getattr(choice.mesh, axis.field) for choice in found}
        kept = draw(st.sets(st.sampled_from(sorted(held)), min_size=1, max_size=2))
        job = searched(job, **{str(axis.limit): tuple(sorted(kept))})
        found = [c for c in found if getattr(c.mesh, axis.field) in kept]
    # Limits change what a fleet's fullest layout is, so that all is listed again.
    assume(0 < plans_of(job, everywhere(job)) <= each)
    return job


def taken_room(draw: Draw, job: Pricing) -> float | None:
    """Nothing, or what leaves about the memory of some plan, or a little less. [B]."""
    if draw(st.integers(0, 3)) == 0:
        return None
    free = with_room(job, 0.0)
    found, table = listed_somewhere(draw, free)
    at = draw(st.integers(0, len(found) - 1))
    costs = costs_of(table, at, found[at])
    held = rank_blocks(costs, even_counts(costs))
    fullest = int(held.argmax())
    blocks = int(held[fullest])
    blocks += draw(st.sampled_from([-1, 0, 0, 1, -blocks // 4, -blocks]))
    part = table.each[costs.pool(fullest)]
    whole = float(budget_bytes(part.pricing, part.meshes)[at])
    return max(whole - 512 * blocks, 0.0) / job.framework.profile.packing


def with_room(job: Pricing, taken: float | None) -> Pricing:
    """A job on GPUs of which so much is taken, and nothing by communicators."""
    if taken is None:
        return job
    gb = taken / 1e9
    return with_pools(with_profile(job, context_gb=gb, communicator_gb=0.0))


def risked_jobs(
    name: str, most: int = CAP, one_in: int = 0
) -> st.SearchStrategy[Pricing]:
    """A job of :func:`whole_jobs` whose risk is limited: to any, or to a plan's own.

    Some plans are likelier than others to run out, so that the limit rules them out.
    """

    @st.composite
    def risked(draw: st.DrawFn) -> Pricing:
        job = draw(whole_jobs(name, most, one_in))
        high = draw(st.sampled_from([1.1, 1.5, 3.0]))
        band = Band(low=draw(st.sampled_from([0.5, 0.9])), high=high)
        bands = job.uncertainty.model_copy(update={"memory": band})
        pools = tuple(replace(pool, uncertainty=bands) for pool in job.pools)
        job = replace(job, uncertainty=bands, pools=pools)
        return replace(job, risk=taken_risk(draw, job))

    return risked()


def taken_risk(draw: Draw, job: Pricing) -> float:
    """A risk from small to large, or a little more or less than some plan's. [1].

    It is no plan's own, as 0.5 is where a plan fills the memory to the byte: there the
    last bit of two sums decides.
    """
    found, table = listed_somewhere(draw, job)
    at = draw(st.integers(0, len(found) - 1))
    costs, on = costs_of(table, at, found[at]), table.meshes.take(np.array([at]))
    own = oom_chance(table.pricing, on, costs, even_counts(costs))
    near = own * draw(st.sampled_from([0.99, 1.01]))
    risk = draw(st.sampled_from([0.05, 0.45, 0.999, near, near, near]))
    return min(max(risk, 1e-6), 0.9999)


def listed_somewhere(draw: Draw, job: Pricing) -> tuple[list[Choice], CostTable]:
    """Candidates of one of the places that have any, with their prices."""
    places_of = switched_places(job)
    every = [listed for one in places_of if (listed := priced(one)) is not None]
    return every[0] if len(every) == 1 else draw(st.sampled_from(every))

"""Meshes of a space, packed, and the candidates on a part of the meshes at a time."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice

import numpy as np

from planner.cost.estimate.host_bound import leaves_the_gpus
from planner.cost.meshes import Meshes, Rows
from planner.cost.pricing import Pricing
from planner.search.space.blocks import CHOSEN, block_rows
from planner.search.space.declared import Space
from planner.search.space.host_memory_limit import within_host_memory
from planner.search.space.schedules import (
    NO_RECOMPUTE,
    Chunks,
    menu_rows,
    schedule_rows,
)
from planner.search.space.switches import of_the_variant
from planner.search.space.writable import written
from planner.search.stop import Stop
from planner.specs.layouts.recompute import BLOCK_KINDS

AT_ONCE = 8192
"""Meshes that are listed between two looks at the limits. [1]"""
PP_COLUMN = [field.name for field in fields(Meshes)].index("pp")
"""Column of the pipeline ranks in packed meshes. [1]"""


def packed(rows: Iterable[tuple[int, ...]], stop: Stop) -> Rows:
    """Pack meshes as they are listed, in a twelfth of the tuples' memory.

    Returns:
        Meshes. [1], shape (meshes, fields)
    """
    width, left = len(fields(Meshes)), iter(rows)
    parts = [np.zeros((0, width), dtype=np.int32)]
    while some := list(islice(left, AT_ONCE)):
        parts.append(np.array(some, dtype=np.int32).reshape(-1, width))
        stop.check()
    return np.concatenate(parts)


@dataclass(frozen=True)
class Listing:
    """Meshes of a space, with all that decides the candidates on each mesh."""

    pricing: Pricing
    rows: Rows
    menu: tuple[str, ...]
    """Recompute kinds that are searched. [text]"""
    chunks: Chunks
    """Chunks above one that a rank may have in the space. [1]"""
    hostings: tuple[tuple[int, ...], ...] = ()
    """Pipeline ranks on each of several pools, by mesh. [1]"""
    has_blocks: bool = True
    """True where a plan may recompute the first layers of every stage."""

    def __len__(self) -> int:
        return len(self.rows)

    def slices(self, size: int) -> Iterator[slice]:
        """Cut the meshes into parts."""
        for start in range(0, max(len(self), 1), size):
            yield slice(start, start + size)

    def only(self, some: slice) -> "Listing":
        """Keep some meshes."""
        rows, hostings = self.rows[some].copy(), self.hostings[some]
        return replace(self, rows=rows, hostings=hostings)

    def part(self, some: slice, removed: Counter[str]) -> Space:
        """List the candidates on some meshes."""
        pricing, menu = self.pricing, self.menu
        full = pricing.search.space == "full"
        meshes = Meshes.from_rows(self.rows[some])
        tied = pricing.framework.limits.recompute_scope == "plan" or len(menu) == 1
        rows = schedule_rows(pricing, meshes, removed, full=full, chunks=self.chunks)
        found = [menu_rows(pricing, rows, menu, removed, tied=tied)]
        if self.has_blocks:
            found.append(block_rows(pricing, meshes, rows, removed))
        columns = zip(*((*each, entry) for each, entry in found), strict=True)
        mesh, vpp, schedules, entry = map(np.concatenate, columns)
        more = BLOCK_KINDS if (entry < CHOSEN).any() else ()
        space = Space(
            meshes=meshes,
            mesh=mesh,
            vpp=vpp,
            schedules=schedules,
            menu=entry,
            recompute=tuple(dict.fromkeys((*menu, *more))) or (NO_RECOMPUTE,),
            removed={},
            hostings=self.hostings[some],
        )
        space = space.take(np.flatnonzero(of_the_variant(pricing, space)))
        if len(space) and pricing.framework.writers:
            space = space.take(written(pricing, space, removed))
        if len(space) and leaves_the_gpus(pricing):
            space = space.take(within_host_memory(pricing, space, removed))
        return space

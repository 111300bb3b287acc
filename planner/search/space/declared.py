"""The candidates of a space as columns, and the rules that removed the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from planner.cost.meshes import Ints, Meshes
from planner.search.space.blocks import CHOSEN, block_entries
from planner.search.space.schedules import SEARCHED


@dataclass(frozen=True)
class Space:
    """Meshes of the declared space, candidates on them, and what was removed."""

    meshes: Meshes
    mesh: Ints
    """Mesh of every candidate. [1], shape (candidates,)"""
    vpp: Ints
    """Chunks per rank of every candidate. [1], shape (candidates,)"""
    schedules: Ints
    """Schedule of every candidate, an entry of ``SEARCHED``. [1]"""
    menu: Ints
    """Entry of the recompute menu, -1 where layers choose. With ``-1 - N`` the first N
    layers of every virtual stage recompute in full, the others nothing. [1]"""
    recompute: tuple[str, ...]
    """The recompute menu. [text]"""
    removed: dict[str, int]
    """Tuples removed by each rule before pricing. [1]"""
    hostings: tuple[tuple[int, ...], ...] = ()
    """Pipeline ranks on each of several pools, by mesh. [1]"""

    def __len__(self) -> int:
        return len(self.mesh)

    def take(self, candidates: Ints) -> "Space":
        """Keep some candidates and all meshes."""
        names = ("mesh", "vpp", "schedules", "menu")
        return replace(self, **{n: getattr(self, n)[candidates] for n in names})

    def mesh_of(self, candidate: int) -> Meshes:
        """Mesh of a candidate."""
        return self.meshes.take(self.mesh[candidate : candidate + 1])

    def on_own_meshes(self) -> "Space":
        """Leave out the meshes that no candidate is on."""
        rows, own = np.unique(self.mesh, return_inverse=True)
        hostings = tuple(self.hostings[row] for row in rows if self.hostings)
        meshes = self.meshes.take(rows)
        return replace(self, meshes=meshes, mesh=own, hostings=hostings)

    def schedule(self, candidate: int) -> str:
        """Schedule of a candidate."""
        return SEARCHED[self.schedules[candidate]]

    def hosting(self, candidate: int) -> tuple[int, ...]:
        """Pipeline ranks that each pool hosts, where there are several.

        Returns:
            Ranks in the order of the pools; empty where one pool hosts all. [1]
        """
        return self.hostings[int(self.mesh[candidate])] if self.hostings else ()

    def hosted(self) -> Ints:
        """Pipeline ranks that each of several pools hosts, by candidate.

        Returns:
            Ranks in the order of the pools. [1], shape (candidates, pools)
        """
        pools = len(self.hostings[0]) if self.hostings else 0
        rows = np.array(self.hostings, dtype=np.int64).reshape(-1, max(pools, 1))
        return rows[self.mesh]

    def choices(self, candidate: int) -> tuple[int, ...]:
        """Menu entries that the layers of a candidate may use."""
        entry = int(self.menu[candidate])
        if entry < CHOSEN:
            return block_entries(self.recompute)
        return tuple(range(len(self.recompute))) if entry < 0 else (entry,)

    def block(self, candidate: int) -> int:
        """First layers of every virtual stage that a candidate recomputes in full.

        Returns:
            Layers; 0 where the candidate has no blocks. [1]
        """
        return max(CHOSEN - int(self.menu[candidate]), 0)


def joined(parts: Sequence[Space]) -> Space:
    """Join parts of a space, each on separate meshes.

    Args:
        parts: At least one part; longer menus only append kinds to shorter menus.
    """
    if len(parts) == 1:
        return replace(parts[0], removed={})
    meshes = [part.meshes for part in parts]
    first = np.cumsum([0, *(len(each) for each in meshes[:-1])])
    return Space(
        meshes=Meshes(
            *(
                np.concatenate([getattr(each, f.name) for each in meshes])
                for f in fields(Meshes)
            )
        ),
        mesh=np.concatenate(
            [part.mesh + start for part, start in zip(parts, first, strict=True)]
        ),
        vpp=np.concatenate([part.vpp for part in parts]),
        schedules=np.concatenate([part.schedules for part in parts]),
        menu=np.concatenate([part.menu for part in parts]),
        recompute=max((part.recompute for part in parts), key=len),
        removed={},
        hostings=tuple(row for part in parts for row in part.hostings),
    )

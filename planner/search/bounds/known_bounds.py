"""Bounds of the first tier that an earlier search of the same job found."""

from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from planner.cost.meshes import Floats
from planner.cost.pricing import Pricing
from planner.search.bounds.paths import ShapePaths
from planner.search.space.declared import Space

MOST = 1 << 19
"""Candidates of a variant whose bounds are kept, at 80 B each. [1]"""
ODD = 0x9E3779B97F4A7C15
"""Multiplier that spreads equal sums over 64 bits; any odd number will do. [1]"""
NOT_IN_BOUNDS = ("search", "risk", "spare", "aim")
"""Fields of a job that no bound of the first tier depends on. [text]"""

Rows = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]


@dataclass
class _OfVariant:
    """Candidates of one variant as rows, in the order of their hashes."""

    pricing: Pricing
    menu: tuple[str, ...]
    rows: list[Rows] = field(default_factory=list)
    bounds: list[Floats] = field(default_factory=list)
    _hashes: Hashes | None = None

    def add(self, rows: Rows, bounds: Floats) -> None:
        """Keep more candidates, up to the most."""
        if len(rows) and sum(map(len, self.bounds)) + len(rows) <= MOST:
            self.rows.append(rows)
            self.bounds.append(bounds)
            self._hashes = None

    def of(self, rows: Rows) -> Floats:
        """Bounds of some candidates; 0 for those that are not known. [s]."""
        if not self.bounds:
            return np.zeros(len(rows))
        known = self._sorted()
        at = np.searchsorted(known, _hashed(rows))
        at = np.minimum(at, len(known) - 1)
        same = (self.rows[0][at] == rows).all(axis=1)
        return np.where(same, self.bounds[0][at], 0.0)

    def _sorted(self) -> Hashes:
        """Join all candidates in the order of their hashes, once after each change."""
        if self._hashes is None:
            rows = np.concatenate(self.rows)
            hashes = _hashed(rows)
            order = np.argsort(hashes)
            self.rows = [rows[order]]
            self.bounds = [np.concatenate(self.bounds)[order]]
            self._hashes = hashes[order]
        return self._hashes


class KnownBounds:
    """Bounds of candidates, for further searches of the job over the same candidates.

    A bound depends on the candidate and on prices, but neither on limits of the search
    nor on the memory that a plan may need. So a search of a part of a space, or of the
    space under another limit on memory, drops candidates without pricing them. Paths
    depend on the shape of a pipeline alone.
    """

    def __init__(self) -> None:
        self.paths = ShapePaths()
        """Paths by shape that the searches have found."""
        self.variants: list[_OfVariant] = []

    def of(self, pricing: Pricing, space: Space) -> Floats:
        """Bounds of candidates, where they are known.

        Returns:
            Lower bounds; 0 where none is known. [s], shape (candidates,)
        """
        return self._of(pricing, space).of(_rows(pricing, space))

    def keep(self, pricing: Pricing, space: Space, bounds: Floats) -> None:
        """Remember bounds of candidates that are not known yet.

        Args:
            pricing: A variant of the job.
            space: Candidates.
            bounds: Lower bound on every plan of each candidate. [s]
        """
        rows, its = _rows(pricing, space), self._of(pricing, space)
        new = its.of(rows) == 0
        its.add(rows[new], bounds[new])

    def _of(self, pricing: Pricing, space: Space) -> _OfVariant:
        """Candidates of a variant, none at first."""
        for known in self.variants:
            same = known.menu == space.recompute
            if same and _is_priced_alike(known.pricing, pricing):
                return known
        self.variants.append(_OfVariant(pricing, space.recompute))
        return self.variants[-1]


def _is_priced_alike(one: Pricing, other: Pricing) -> bool:
    """Tell if each candidate has the same bound in two jobs."""
    names = (f.name for f in fields(Pricing) if f.name not in NOT_IN_BOUNDS)
    pairs = ((getattr(one, name), getattr(other, name)) for name in names)
    alike = all(mine is theirs or mine == theirs for mine, theirs in pairs)
    same = one.search.space == other.search.space
    return alike and same


def _rows(pricing: Pricing, space: Space) -> Rows:
    """Candidates as rows of numbers. [1], shape (candidates, columns)."""
    own = np.stack((space.vpp, space.schedules, space.menu), axis=1)
    columns: list[Rows] = [space.meshes.packed[space.mesh], own.astype(np.int32)]
    if pricing.mixed:
        hosted = space.hosted().reshape(len(space), len(pricing.stage_pools))
        columns.append(hosted.astype(np.int32))
    return np.concatenate(columns, axis=1)


def _hashed(rows: Rows) -> Hashes:
    """One number for each row; equal rows have equal numbers. [1]."""
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        hashes = hashes * np.uint64(ODD) + column.astype(np.uint64)
    return hashes

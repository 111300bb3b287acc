"""Candidates that some writer of launch files for the framework can express."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.cost.meshes import Ints, Meshes
from planner.cost.pricing import Pricing
from planner.search.space.declared import Space
from planner.specs.frameworks.lacks import Lack
from planner.specs.layouts.context import CP_KINDS

Flags = npt.NDArray[np.bool_]
MIXED = "mixed"
"""Recompute of a candidate whose layers differ. [text]"""


class _Columns:
    """Meshes as the conditions of records read them, column by column."""

    def __init__(self, pricing: Pricing, meshes: Meshes, recompute: Any) -> None:
        self._meshes = meshes
        self.offload, self.comm_dtype = pricing.offload, pricing.sends
        self.recompute = recompute

    def __getattr__(self, name: str) -> Ints:
        column: Ints = getattr(self._meshes, "zero" if name == "zero_stage" else name)
        return column

    @property
    def cp_kind(self) -> Any:
        """Kind of context parallelism. [text], shape (meshes,)."""
        return np.array(CP_KINDS)[self._meshes.cp_kind]


def written(pricing: Pricing, space: Space, removed: Counter[str]) -> Ints:
    """Candidates that the job's writer can express.

    A job that no writer can express keeps every candidate. Such a job is refused
    before any search, or the stack has no writer.

    Returns:
        Indices. [1], shape (kept,)
    """
    kept = np.ones(len(space), dtype=bool)
    for lack in _lacks(pricing):
        missing = _missing(pricing, space, lack) & kept
        if missing.any():
            rule = f"{pricing.framework.name} has no words for it: {lack.feature}"
            removed[rule] += int(missing.sum())
            kept &= ~missing
    return np.flatnonzero(kept)


def _lacks(pricing: Pricing) -> tuple[Lack, ...]:
    """Lacks of the first writer that can express the job; empty without a writer."""
    for writer in pricing.framework.writers:
        lacks = tuple(writer.lacks(pricing.asked))
        if all(lack.when for lack in lacks):
            return lacks
    return ()


def _missing(pricing: Pricing, space: Space, lack: Lack) -> Flags:
    """Candidates that ask for what is lacking. [bool], shape (candidates,)."""
    if not lack.of_layers:
        of_meshes = _holds(pricing, space.meshes, lack, MIXED)
        return of_meshes[space.mesh]
    names = np.array([*space.recompute, MIXED])
    entry = np.where(space.menu < 0, len(space.recompute), space.menu)
    return _holds(pricing, space.meshes.take(space.mesh), lack, names[entry])


def _holds(pricing: Pricing, meshes: Meshes, lack: Lack, recompute: Any) -> Flags:
    assert lack.when is not None
    found = lack.when(_Columns(pricing, meshes, recompute))
    return np.broadcast_to(np.asarray(found, dtype=bool), (len(meshes),))

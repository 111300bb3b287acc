"""PyTorch's memory trackers, told to remember the most by phase and what it was."""

from dataclasses import dataclass, field
from typing import Any

import pytest

torch = pytest.importorskip("torch")
whole = pytest.importorskip("torch.distributed._tools.mem_tracker")
sharded = pytest.importorskip("torch.distributed._tools.fsdp2_mem_tracker")

TOTAL = "Total"
NAMES = {
    "Parameter": "params",
    "Sharded Param": "params",
    "Unsharded Param": "unsharded_params",
    "Buffer": "buffers",
    "Gradient": "grads",
    "Sharded Grad": "grads",
    "Unsharded Grad": "unsharded_grads",
    "Activation": "activations",
    "Temp": "temp",
    "All Gather": "all_gather",
    "Reduce Scatter": "reduce_scatter",
    "Optstate": "optimizer",
    "OptState": "optimizer",
    "Other": "inputs",
    "Inputs": "inputs",
}
"""What either tracker calls a category, and what we call it."""


@dataclass(frozen=True)
class Most:
    """The most bytes that stood at once, and what they were."""

    total: int = 0
    parts: dict[str, int] = field(default_factory=dict)


class Highest:
    """The most that stood at once; PyTorch's own count also walks every module."""

    _curr_mem_snap: dict[Any, dict[Any, int]]
    device = "cuda"
    highest = Most()

    def standing(self) -> dict[Any, int]:
        """Bytes that stand now on the accelerator, by PyTorch's categories."""
        snapshots = self._curr_mem_snap.items()
        here = [s for device, s in snapshots if device.type == self.device]
        return here[0] if here else {TOTAL: 0}

    def _update_peak_stats(self, _state: Any) -> None:
        now = self.standing()
        if now[TOTAL] > self.highest.total:
            self.highest = named(now)

    def phase(self) -> Most:
        """The most since the phase before, which ends here."""
        most, self.highest = self.highest, named(self.standing())
        return most


class Tracker(Highest, whole.MemTracker):
    """Counts a model that is whole, or split by DTensor or a pipeline."""


class ShardedTracker(Highest, sharded.FSDPMemTracker):
    """Counts a model under FSDP2."""


def named(standing: dict[Any, int]) -> Most:
    """Bytes by our categories."""
    parts: dict[str, int] = {}
    for category, size in standing.items():
        if category != TOTAL:
            name = NAMES[category.value]
            parts[name] = parts.get(name, 0) + size
    return Most(total=standing[TOTAL], parts=parts)


class NoHook:
    """A hook that was never there to be removed."""

    @staticmethod
    def remove() -> None: ...

"""Formats of gradients that a narrower one, searched beside them, makes useless."""

from collections import Counter

from planner.cost.workload import Workload
from planner.specs.formats import WIRE_BYTES
from planner.specs.layout import Offload

Shards = tuple[int, int]
"""ZeRO stage and size of a shard group. [1]"""
BY_NARROWER = "narrower gradients are no slower and need no more"
ENOUGH = 2
"""Times by which the shards must outnumber what a cast to fp32 would need: the margin
is above what rounding to blocks may add to a unit of 512 parameters or more. [1]"""


class NarrowGradients:
    """Whether the full space holds a layout again, with narrower gradients.

    Narrow gradients move fewer bytes and change no other time. Whole gradients of n
    parameters are kept in h n bytes; a narrow format saves ``(h - h') n`` of them all
    the time, and in the optimizer's step alone makes a copy of ``c n / S``. So from
    ``S >= 2 c / (h - h')`` on no moment of any rank needs more, and a layout in the
    wide format is in no plan that is better than the same in the narrow one. Rules out
    nothing where gradients are sharded, or anything is offloaded, or the user lists
    formats; a variant of one format is alone and keeps all.
    """

    def __init__(self, workload: Workload) -> None:
        self.routed = workload.model.expert_parameters > 0
        self.least = self._least(workload)

    def _least(self, workload: Workload) -> float:
        """Ranks that must share states; infinite where the rule does not hold. [1]."""
        search, forms = workload.search, workload.framework.formats.gradients
        alone = search.space != "full" or bool(search.choices("gradient_dtype"))
        own, known = workload.comm_dtype, workload.sendable("gradients")
        if alone or own is None or workload.offload != Offload():
            return float("inf")
        narrow = min(known, key=WIRE_BYTES.__getitem__)
        by_name = {str(name): form for name, form in forms.items()}
        ours, theirs = by_name.get(own.gradients), by_name.get(narrow)
        if ours is None or theirs is None or narrow == own.gradients:
            return float("inf")
        saved = (ours.held or 0.0) - (theirs.held or 0.0)
        copied = (theirs.step or 0.0) - (ours.step or 0.0)
        return ENOUGH * max(copied, 0.0) / saved if saved > 0 else float("inf")

    def worth(
        self, shards: list[Shards], tp: int, held: int, removed: Counter[str]
    ) -> list[Shards]:
        """What is of use in this format.

        Args:
            shards: ZeRO stages and shard groups. [1]
            tp: Tensor ranks. [1]
            held: Ranks that hold one copy of the experts. [1]
            removed: Counts what the rule removes, by its name. [1]

        Returns:
            Those for which the same with narrower gradients is not as good. [1]
        """
        if self.least == float("inf"):
            return shards
        kept = [at for at in shards if not self._beaten(*at, tp, held)]
        removed[BY_NARROWER] += len(shards) - len(kept)
        return kept

    def _beaten(self, zero: int, shard: int, tp: int, held: int) -> bool:
        inside = max(shard * tp // held, 1)
        least = min(shard, inside) if self.routed else shard
        return zero == 1 and least >= self.least

"""Formats of gradients that a narrower one, searched beside them, makes useless."""

from planner.cost.workload import Workload
from planner.specs.formats import WIRE_BYTES
from planner.specs.layout import Offload

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

    def rule_out(self, *, zero: int, shard: int, expert_shard: int) -> bool:
        """Whether a mesh is of no use in this format.

        Args:
            zero: ZeRO stage. [1]
            shard: Ranks that divide the states. [1]
            expert_shard: The same of one expert's. [1]

        Returns:
            True where the same mesh with narrower gradients is as good.
        """
        least = min(shard, expert_shard) if self.routed else shard
        return zero == 1 and least >= self.least

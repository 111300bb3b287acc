"""Formats of gradients that a narrower format, searched beside them, makes useless."""

from collections import Counter

from planner.cost.pricing import Pricing
from planner.specs.layouts.formats import WIRE_BYTES
from planner.specs.layouts.layout import Offload

Shards = tuple[int, int, int]
"""ZeRO stage, size of a shard group, ranks that share a second copy of weights. [1]"""
BY_NARROWER = "narrower gradients are no slower and need no more"
ENOUGH = 2
"""Factor by which shards must exceed the number that a cast to fp32 needs. [1]

The margin is above what rounding to blocks may add to a unit of 512 parameters or more.
"""


class NarrowGradients:
    """Rule of the full space that drops layouts which narrower gradients beat.

    Narrow gradients move fewer bytes and change no other time. Whole gradients of n
    parameters are kept in h n bytes. A narrow format saves ``(h - h') n`` bytes all
    the time. In the optimizer's step alone it makes a copy of ``c n / S`` bytes. So
    from ``S >= 2 c / (h - h')`` on, no moment of any rank needs more memory. Then a
    layout in the wide format is in no plan better than in the narrow format.

    The rule holds at ZeRO-1 alone, and drops nothing where anything is offloaded or
    the user lists formats. A variant of a single format keeps all layouts.
    """

    def __init__(self, pricing: Pricing) -> None:
        self.routed = pricing.model.expert_parameters > 0
        self.least = self._least(pricing)

    def _least(self, pricing: Pricing) -> float:
        """Ranks that must share states; infinite where the rule does not hold. [1]."""
        search, forms = pricing.search, pricing.framework.formats.gradients
        alone = search.space != "full" or bool(search.choices("gradient_dtype"))
        own, known = pricing.comm_dtype, pricing.sendable("gradients")
        if alone or own is None or pricing.offload != Offload():
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
        """Shardings that narrower gradients do not beat."""
        if self.least == float("inf"):
            return shards
        kept = [at for at in shards if not self._beaten(*at[:2], tp, held)]
        removed[BY_NARROWER] += len(shards) - len(kept)
        return kept

    def _beaten(self, zero: int, shard: int, tp: int, held: int) -> bool:
        inside = max(shard * tp // held, 1)
        least = min(shard, inside) if self.routed else shard
        return zero == 1 and least >= self.least

"""The causal mask of a batch, made once for all blocks."""

from __future__ import annotations

from planner.eager.engine.storage import BOOL, Tensor


def causal_mask(embedded: Tensor, *, additive: bool) -> Tensor:
    """A mask over pairs of tokens: same document, not later, not padding.

    Args:
        embedded: [b, s, h]. [tensor]
        additive: True for a mask added to the scores, False for a boolean mask. [flag]

    Returns:
        [b, 1, s, s]. [tensor]
    """
    tape = embedded.tape
    b, s = embedded.shape[:2]
    same = tape.new((b, 1, s, s), BOOL)
    mask = tape.pointwise(same)
    del same
    earlier = tape.pointwise(mask)
    mask = tape.pointwise(mask, earlier)
    del earlier
    return tape.pointwise(mask, dtype=embedded.dtype) if additive else mask

"""FLOPs of models with scans or indexers equal what torch counts over the reference.

Short convolutions are left out on both sides.

Gated delta: the reference runs products that torch counts, and two triangular solves
that it does not: ours count the solves as the products that kernels run. In backward a
solve has a product with its solution. The first chunk has no state before it and the
last none behind it: of three products with the state, two have one gradient fewer once,
the third two.

Kimi's delta: keys by keys and queries by keys are no products in the reference.

Mamba-2: the reference repeats keys and queries of a group for each head, so that it
multiplies them once a head; and it passes states on by a product of all chunks by all
chunks, whose first state is a constant.

Lightning: the first state is a constant, and the last block's state is read by none.

Indexers: the reference trains them by a loss of their own; they have no backward here.
"""

from typing import Any

import pytest
from hugging_face import NAMES, counters, ours, small, theirs, torch

from planner.models import preset
from planner.models.layers.blocks import (
    CompressedAttention,
    GatedDelta,
    KimiDelta,
    Lightning,
    ScanBlock,
    SparseLatentAttention,
    StateSpace,
)

pytestmark = pytest.mark.oracle

LISTED = (ScanBlock, SparseLatentAttention, CompressedAttention)
"""Blocks whose reference has products that ours lacks, or the other way round."""
BATCH, CHUNKS, CHUNK = 2, 2, 64
LENGTH = CHUNKS * CHUNK
SCANS = [
    name
    for name in NAMES
    if any(isinstance(kind.attention, LISTED) for kind in preset(name).kinds)
]
UNREAD = 3
"""Gradients of products with a first state, or of a last one, that none needs. [1]"""
MISSING_GRADIENTS = 4
"""Gradients of products with the state that no chunk needs. [1]"""


def _counted(name: str, config: dict[str, Any], *, train: bool) -> int:
    """FLOPs that torch counts over a batch, convolutions left out."""
    counter = counters.FlopCounterMode(display=False)
    model = theirs(name, config, "cpu").eval()
    words = torch.arange(BATCH * LENGTH).reshape(BATCH, LENGTH)
    with counter:
        logits = model(words % model.config.vocab_size, use_cache=False).logits
        if train:
            logits.sum().backward()
    by_operator = counter.get_flop_counts()["Global"]
    return sum(n for op, n in by_operator.items() if "convolution" not in str(op))


def _beside(block: object) -> tuple[float, float]:
    """FLOPs per token that the reference has beside ours: forward, and in training."""
    if isinstance(block, KimiDelta):
        pairs = 4 * CHUNK * block.state_width / block.value_dim
        lost = MISSING_GRADIENTS * 2 * block.state_width / CHUNKS
        return -pairs, -3 * pairs - lost
    if isinstance(block, GatedDelta):
        solved = block.solved_flops(CHUNK)
        lost = MISSING_GRADIENTS * 2 * block.state_width / CHUNKS
        return -solved, -2 * solved - lost
    if isinstance(block, StateSpace):
        repeated = 2 * CHUNK * block.state * (block.state_heads - block.groups)
        passed = 2 * (CHUNKS + 1) ** 2 * block.state_width / LENGTH
        return repeated + passed, 3 * (repeated + passed)
    if isinstance(block, Lightning):
        return 0.0, -UNREAD * 2 * block.state_width / CHUNKS
    if isinstance(block, SparseLatentAttention | CompressedAttention):
        products = [g for g in block.gemms() if g.name.startswith("index")]
        scores = block.index_flops(LENGTH, causal=False)
        return 0.0, -2 * (scores + sum(2 * g.weights for g in products))
    return 0.0, 0.0


@pytest.mark.parametrize("name", SCANS)
def test_flops_equal_those_torch_counts(name: str) -> None:
    config = small(name)
    model = ours(name, config)
    layers = sum(model.layer_flops(k, LENGTH, "full") * n for k, n in model.runs)
    forward = layers + model.head_flops + 2 * model.outer_weights
    beside = [
        sum(_beside(kind.attention)[each] * n for kind, n in model.runs)
        for each in (0, 1)
    ]
    counted = _counted(name, config, train=False)
    assert counted == BATCH * LENGTH * (forward + beside[0])
    trained = _counted(name, config, train=True)
    assert trained == BATCH * LENGTH * (3 * forward + beside[1])

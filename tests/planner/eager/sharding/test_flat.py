"""FSDP1 by its own arithmetic, and beside measured rows."""

from itertools import pairwise
from typing import Any

import pytest
from each import each

from planner.eager import EagerCase, Replay, Unsupported, replay
from planner.eager.allocator.allocator import Allocator
from planner.eager.allocator.blocks import MIB
from planner.eager.allocator.steps import Steps, equal_steps, made, run
from planner.eager.case import LoraCase
from planner.eager.engine.storage import GATHERS, STREAMS
from planner.eager.sharding.flat import BUCKET, buckets

GIB = 2**30
LLAMA: dict[str, Any] = {
    "family": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
"""Llama 2 7B."""
NAMES = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "down_proj")
RANK = 64
BLOCK = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
"""Weights of a block without adapters. [1]"""
WHOLE = 2 * BLOCK
"""Bytes of a block's frozen weights. [B]"""
ADAPTERS = RANK * (3 * 2 * 4096 + 3 * (4096 + 11008))
"""Weights of a block's adapters. [1]"""
ENDS = 2 * 32000 * 4096 + 4096
"""Weights of embedding, last norm and head. [1]"""


def case(quant: str | None = None, layers: int = 32, **keys: Any) -> EagerCase:
    """Adapters over two ranks, as train.py of Answer.AI's fsdp_qlora runs them."""
    lora = LoraCase.model_validate(
        {"r": RANK, "targets": NAMES, "dropout": 0.1, "quant": quant}
    )
    given = {"model": LLAMA, "layers": layers, "seq": 512, "recompute": "full"}
    own = {"loss": "upcast", "keep_outputs": True, "lora": lora}
    sharded = {"zero": 3, "world": 2, "mp": False, "flat": True}
    return EagerCase.model_validate(given | own | sharded | keys)


def wrapped(steps: Steps) -> Allocator:
    """The allocator when the model is wrapped and no step has begun."""
    allocator, live = Allocator(), {}
    for number, size in made(steps):
        if size:
            live[number] = allocator.take(size, steps.streams.get(number, 0))
        else:
            allocator.give(live.pop(number))
    return allocator


def told(**keys: Any) -> Replay:
    """A replay of two blocks, as on a GPU."""
    return replay(case(layers=2, **keys), tracked=False)


def test_a_bucket_is_closed_by_the_weight_that_fills_it() -> None:
    """Six of a block's seven matrices make 300 MiB; a table of 250 is a bucket."""
    block = [32 * MIB] * 4 + [86 * MIB] * 3
    assert list(buckets(block, BUCKET)) == [300 * MIB, 86 * MIB]
    assert list(buckets([BUCKET, 8192, BUCKET], BUCKET)) == [BUCKET, BUCKET + 8192]
    assert not list(buckets([], BUCKET))


@each("world", [2, 4, 8])
def test_a_wrapped_rank_has_its_part_and_the_cache_of_one_block(world: int) -> None:
    """Weights one by one, in buckets and flat, of a block and then of the ends.

    A block's weights 386 MiB, its buckets 386, its flat parameter 386; of the ends 500
    each, 250 of the buckets and 250 of the weights in what the blocks left. A block
    of the allocator may have up to 1 MiB more than was asked for.
    """
    allocator = wrapped(equal_steps(case(world=world)))
    part = 2 * (32 * (BLOCK + ADAPTERS) + ENDS) / world
    assert allocator.allocated == pytest.approx(part, abs=34 * MIB)
    cache = allocator.reserved - allocator.allocated
    least, most = 2 * (2 * BLOCK + ENDS), 2 * (3 * BLOCK + 3 * ENDS)
    assert least < cache < most


def test_offloaded_parts_leave_the_cache_alone() -> None:
    """Nothing is on the GPU; the cache has a rank's part of one block at most more."""
    away, here = (wrapped(equal_steps(case(offload=o))) for o in (True, False))
    assert away.allocated < MIB
    beyond = (away.reserved - away.allocated) - (here.reserved - here.allocated)
    assert abs(beyond) < BLOCK + ADAPTERS + ENDS


@each("offload", [False, True])
def test_a_step_holds_two_gathered_blocks_and_the_ends(*, offload: bool) -> None:
    """From one block to the one before it, both are whole; gradients by the rank."""
    backward = told(offload=offload, seq=16).phases["backward"].by_category
    gathered = sum(backward.get(name, 0) for name in GATHERS)
    assert gathered == pytest.approx(2 * (2 * (BLOCK + ADAPTERS) + ENDS), rel=1e-3)
    here = 2 * (BLOCK + ADAPTERS) + ENDS
    parts = backward.get("params", 0)
    assert parts == (0 if offload else pytest.approx(here, rel=1e-3))


def test_the_loss_has_one_block_gathered_ahead() -> None:
    """With many tokens the loss is the fullest moment."""
    backward = told(seq=8192).phases["backward"].by_category
    gathered = sum(backward.get(name, 0) for name in GATHERS)
    assert gathered == pytest.approx(2 * (BLOCK + ADAPTERS + ENDS), rel=1e-3)


def test_gathers_that_follow_each_other_are_of_two_streams() -> None:
    """Blocks take turns, so that the cache of one lends nothing to the next."""
    steps = equal_steps(case(layers=3, seq=16))
    taken = zip(steps.numbers, steps.fixed.tolist(), strict=True)
    used = [steps.streams.get(number, 0) for number, size in taken if size == WHOLE]
    used = [stream for stream in used if stream]
    assert set(used) == {STREAMS[name] for name in GATHERS}
    assert all(one != other for one, other in pairwise(used))


def test_split_models_and_mixed_precision_are_refused() -> None:
    for keys in ({"mp": True}, {"pp": 2}):
        with pytest.raises(Unsupported, match="flat"):
            replay(case(layers=2, **keys))


@each(
    ("quant", "seq", "reserved"),
    [(None, 512, 10.24), (None, 2048, 10.22), ("nf4", 512, 4.98), ("nf4", 2048, 5.21)],
)
def test_reserved_memory_is_what_a_run_reported(
    quant: str | None, seq: int, reserved: float
) -> None:
    """Two RTX 3090, batch 1: measured rows, whose cache no length changes."""
    ran = run(equal_steps(case(quant, seq=seq)), (seq,) * 2)
    assert ran.peak_reserved / GIB == pytest.approx(reserved, rel=0.05)


@each(("zero", "offload"), [(2, False), (3, False), (2, True), (3, True)])
def test_later_steps_take_nothing_more(zero: int, *, offload: bool) -> None:
    """A step gives back what it takes, and finds its cache in the next."""
    optimizer = "none" if offload else "adamw"
    own = {"zero": zero, "offload": offload, "optimizer": optimizer}
    steps = equal_steps(case("nf4", layers=3, **own))
    two, five = (run(steps, (512,) * count) for count in (2, 5))
    assert two.peak_reserved == five.peak_reserved
    assert two.allocated == five.allocated


def test_zero_2_gathers_every_block_once() -> None:
    """All blocks are whole from their forward to their backward."""
    loss = {"loss": "chunked", "keep_outputs": False}
    kept = told(zero=2, **loss).after["forward"]
    gathered = sum(kept.get(name, 0) for name in GATHERS)
    assert gathered == pytest.approx(2 * (2 * (BLOCK + ADAPTERS) + ENDS), rel=1e-3)

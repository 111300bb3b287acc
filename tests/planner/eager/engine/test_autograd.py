"""The engine's order, what it frees when, and how gradients meet."""

import gc
from typing import Any

import pytest

from planner.eager import EagerCase, replay
from planner.eager.engine.checkpoint import checkpoint
from planner.eager.engine.storage import BF16, F32, GRAIN, Tensor
from planner.eager.engine.tape import Tape
from planner.eager.ops.attention import flash
from planner.eager.ops.pointwise import add, mul, power, scalar, scale, silu, to
from planner.eager.ops.products import linear

BIG = (1024,)
BYTES = 4096


def leaf(tape: Tape, dtype: str = F32) -> Tensor:
    """A parameter of 1024 elements."""
    return tape.parameter(BIG, dtype)


def run_back(loss: Tensor) -> None:
    loss.tape.backward(loss, loss.tape.pointwise(loss))


def test_a_storage_is_counted_in_steps_of_512_bytes() -> None:
    tape = Tape()
    small = tape.new((3,), F32)
    assert tape.ledger.live == GRAIN
    del small
    assert (tape.ledger.live, tape.ledger.peak) == (0, GRAIN)


def test_a_view_keeps_the_storage() -> None:
    tape = Tape()
    whole = tape.new(BIG, F32)
    part = whole.alias((2,), (1,))
    del whole
    assert tape.ledger.live == BYTES
    del part
    assert tape.ledger.live == 0


def test_a_cast_is_free_where_the_type_is_right() -> None:
    tape = Tape()
    x = leaf(tape)
    assert to(x, F32) is x
    assert to(x, BF16).storage.size == BYTES // 2


def test_a_gradient_is_kept_as_it_came_and_later_ones_are_added_in_place() -> None:
    tape = Tape()
    x = leaf(tape)
    for _ in range(2):
        run_back(scalar(scale(x), "sum"))
        assert tape.ledger.live == 2 * BYTES
    assert tape.ledger.by_category["grads"] == BYTES


def test_two_consumers_hold_two_gradients_and_their_sum() -> None:
    tape = Tape()
    x = scale(leaf(tape))
    loss = scalar(add(scale(x), scale(x)), "sum")
    del x
    tape.ledger.restart()
    before = tape.ledger.live
    run_back(loss)
    assert tape.ledger.restart()[0] - before >= 3 * BYTES


def test_saved_tensors_go_with_their_node() -> None:
    tape = Tape()
    x = leaf(tape)
    loss = scalar(power(scale(x)), "sum")
    assert tape.ledger.live == 2 * BYTES + GRAIN
    run_back(loss)
    assert tape.ledger.live == 2 * BYTES + GRAIN
    assert x.grad is not None


def test_what_is_saved_follows_who_needs_a_gradient() -> None:
    tape = Tape()
    x, frozen = leaf(tape), tape.parameter(BIG, F32, trainable=False)
    product = mul(scale(x), frozen)
    assert tape.ledger.live == 3 * BYTES
    assert product.requires_grad
    assert not mul(frozen, frozen).requires_grad


def test_a_frozen_matrix_does_not_keep_its_input() -> None:
    tape = Tape()
    held = {}
    for trainable in (True, False):
        x = tape.parameter((64, 32), F32)
        weight = tape.parameter((16, 32), F32, trainable=trainable)
        before = tape.ledger.live
        out = linear(scale(x), weight)
        held[trainable] = tape.ledger.live - before - out.storage.size
        del x, weight, out
    assert held == {True: 64 * 32 * 4, False: 0}


def test_a_checkpoint_keeps_the_argument_and_makes_the_rest_again() -> None:
    tape = Tape()
    x = scale(leaf(tape))
    before = tape.ledger.live
    out = checkpoint(lambda y: power(power(power(y))), x)
    assert tape.ledger.live - before == BYTES
    tape.ledger.restart()
    run_back(scalar(out, "sum"))
    assert tape.ledger.restart()[0] - before >= 3 * BYTES


def test_a_graph_runs_once() -> None:
    tape = Tape()
    loss = scalar(scale(leaf(tape)), "sum")
    run_back(loss)
    with pytest.raises(AssertionError, match="ran before"):
        run_back(loss)


@pytest.mark.parametrize(("tracked", "held"), [(True, 3), (False, 2)])
def test_a_gpu_adds_gradients_in_place_where_nothing_else_holds_them(
    held: int, *, tracked: bool
) -> None:
    tape = Tape(tracked=tracked)
    x = scale(leaf(tape))
    loss = scalar(add(scale(x), scale(x)), "sum")
    del x
    tape.ledger.restart()
    before = tape.ledger.live
    run_back(loss)
    assert (tape.ledger.restart()[0] - before) // BYTES == held


def test_a_gpu_runs_the_backward_of_silu_in_one_kernel() -> None:
    """Two tensors stand in the step after it: a gradient in and one out."""
    peaks = {}
    for tracked in (True, False):
        tape = Tape(tracked=tracked)
        x = scale(leaf(tape))
        loss = scalar(silu(x), "sum")
        tape.ledger.restart()
        before = tape.ledger.live
        run_back(loss)
        peaks[tracked] = (tape.ledger.restart()[0] - before) // BYTES
    assert peaks == {True: 6, False: 2}


def test_a_gpu_counts_what_flash_attention_allocates_inside() -> None:
    """An fp32 sum of the queries' gradient, row sums, and heads of grouped queries."""
    grown = {}
    for tracked in (True, False):
        tape = Tape(tracked=tracked)
        q = scale(tape.parameter((1, 4, 128, 64), BF16))
        k, v = (scale(tape.parameter((1, 2, 128, 64), BF16)) for _ in range(2))
        loss = scalar(flash(q, k, v), "sum")
        tape.ledger.restart()
        run_back(loss)
        grown[tracked] = tape.ledger.restart()[0]
    dense = 4 * 128 * 64
    gradients = 2 * dense + 2 * dense
    scratch = 4 * dense + 4 * 4 * 128 + 2 * 2 * dense
    assert grown[False] - grown[True] == max(0, scratch - gradients)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"recompute": "full", "lora": {"r": 4}, "ga": 2},
        {"recompute": "selective", "precision": "amp_bf16"},
        {"zero": 3, "world": 4, "recompute": "full"},
        {"tp": 2},
        {"pp": 2},
    ],
    ids=str,
)
def test_nothing_waits_for_the_garbage_collector(changes: dict[str, Any]) -> None:
    """Lifetimes are reference counts: a cycle would hold memory at random."""
    model = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}
    case = EagerCase(model={**model, "vocab_size": 100}, layers=2, seq=32, **changes)
    counted = replay(case)
    first = Tape.new

    def new(tape: Tape, *args: Any, **kwargs: Any) -> Tensor:
        gc.collect(0)
        return first(tape, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tape, "new", new)
        gathered = replay(case)
    assert gathered == counted

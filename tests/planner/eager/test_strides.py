"""Which reshapes are views and which copy."""

from planner.eager.engine.storage import BF16, Tensor
from planner.eager.engine.tape import Tape
from planner.eager.ops.attention import sdpa
from planner.eager.ops.views import (
    cat,
    contiguous,
    narrow,
    repeat_heads,
    reshape,
    split,
    transpose,
)


def heads(tape: Tape, batch: int, count: int = 4) -> Tensor:
    """Heads [b, a, s, d] that lie in memory as [b, s, a, d]."""
    return transpose(tape.new((batch, 16, count, 8), BF16), 1, 2)


def test_heads_of_one_sequence_fold_without_a_copy_and_of_two_with_one() -> None:
    tape = Tape()
    one, two = heads(tape, 1), heads(tape, 2)
    assert reshape(one, 4, 16, 8).storage is one.storage
    assert reshape(two, 8, 16, 8).storage is not two.storage


def test_contiguous_copies_only_what_is_not() -> None:
    tape = Tape()
    x = tape.new((2, 3, 4), BF16)
    assert contiguous(x) is x
    assert contiguous(transpose(x, 0, 1)).storage is not x.storage
    assert contiguous(transpose(transpose(x, 0, 1), 0, 1)).storage is x.storage


def test_slices_and_parts_share_and_joins_copy() -> None:
    tape = Tape()
    x = tape.new((2, 6), BF16)
    parts = split(x, 1, (2, 4))
    assert all(part.storage is x.storage for part in parts)
    assert narrow(x, 1, 6) is x
    assert cat(parts, 1).storage is not x.storage


def test_grouped_heads_are_repeated_in_a_copy() -> None:
    tape = Tape()
    k = heads(tape, 1, 2)
    assert repeat_heads(k, 1) is k
    repeated = repeat_heads(k, 3)
    assert repeated.shape == (1, 6, 16, 8)
    assert repeated.storage.size == 3 * k.storage.size


def test_flash_attention_gives_rows_that_need_no_copy() -> None:
    tape = Tape()
    q, k, v = heads(tape, 2), heads(tape, 2), heads(tape, 2)
    before = tape.ledger.live
    out = sdpa(q, k, v, None)
    assert out.is_contiguous
    assert tape.ledger.live - before == q.storage.size

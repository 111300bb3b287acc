"""Activations in flight equal the closed forms, and peaks lose nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.schedules import SPLIT, in_flight, operations, peaks


def ranks(schedule: str, p: int, v: int, m: int) -> list[int]:
    return [in_flight(schedule, p, v, m, rank) for rank in range(p)]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("m", [1, 2, 5, 8, 16, 33])
def test_closed_forms_of_single_chunk_schedules(p: int, m: int) -> None:
    assert ranks("gpipe", p, 1, m) == [m] * p
    assert ranks("1f1b", p, 1, m) == [min(m, p - r) for r in range(p)]
    assert ranks("zb-h1", p, 1, m) == [min(m, p)] * p


@pytest.mark.parametrize("p", [2, 3, 4, 8])
@pytest.mark.parametrize("v", [2, 3, 4])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_closed_form_of_interleaved(p: int, v: int, groups: int) -> None:
    m = groups * p
    assert ranks("interleaved", p, v, m) == [
        min(m * v, 2 * (p - r - 1) + (v - 1) * p + 1) for r in range(p)
    ]


def test_worked_numbers() -> None:
    assert ranks("1f1b", 8, 1, 32) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert ranks("zb-h1", 8, 1, 32) == [8] * 8
    assert (ranks("interleaved", 8, 2, 32)[0], ranks("interleaved", 8, 2, 32)[7]) == (
        23,
        9,
    )
    assert (ranks("interleaved", 8, 4, 32)[0], ranks("interleaved", 8, 4, 32)[7]) == (
        39,
        25,
    )
    assert ranks("interleaved", 8, 2, 8)[0] == 16
    assert 23 / 2 == 8 * (1 + 7 / 16)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("more", [0, 1, 7])
def test_closed_forms_of_v_shaped_schedules(p: int, more: int) -> None:
    """Half stages: 1f1b's p whole ones on every rank, and one more in DualPipeV."""
    assert ranks("zb-v", p, 2, 2 * p + more) == [2 * p] * p
    assert ranks("dualpipe-v", p, 2, 2 * p + more) == [2 * p + 1] * p
    if p % 2 == 0:
        assert ranks("dualpipe", p, 2, 2 * p + 2 * more) == [p + 1] * p


@pytest.mark.parametrize("p", [2, 4, 8])
def test_few_micro_batches_of_zb_v_are_all_in_flight(p: int) -> None:
    for m in range(1, 2 * p):
        assert max(ranks("zb-v", p, 2, m)) <= 2 * min(m, p)


@given(
    st.sampled_from(
        [
            ("gpipe", 1),
            ("1f1b", 1),
            ("zb-h1", 1),
            ("interleaved", 3),
            ("zb-v", 2),
            ("dualpipe-v", 2),
            ("dualpipe", 2),
        ]
    ),
    st.sampled_from([2, 4, 5]),
    st.integers(1, 4),
    st.data(),
)
def test_peaks_are_the_fullest_backwards_for_any_sizes(
    kind: tuple[str, int], p: int, groups: int, data: st.DataObject
) -> None:
    """Replaying every event finds the same maximum as the Pareto counts do."""
    schedule, v = kind
    p, m = (4, 8 * groups) if schedule == "dualpipe" else (p, groups * p)
    if schedule == "dualpipe-v":
        m = 2 * m
    size = data.draw(st.lists(st.integers(0, 9), min_size=v, max_size=v))
    late = data.draw(st.lists(st.integers(0, 9), min_size=v, max_size=v))
    extra = data.draw(st.lists(st.integers(0, 9), min_size=v, max_size=v))
    release = "W" if schedule in SPLIT else "B"
    all_peaks = peaks(schedule, p, v, m)
    for order, found in zip(operations(schedule, p, v, m), all_peaks, strict=True):
        held, most = 0, 0
        whole = {op[1:] for op in order if op.kind == "H"}
        for op in order:
            held += size[op.chunk] * (op.kind in {"F", "P"})
            held += late[op.chunk] * (op.kind == "B" and release == "W")
            if op.kind in {"B", "H"}:
                most = max(most, held + extra[op.chunk])
            held -= size[op.chunk] * (op.kind == release)
            held -= late[op.chunk] * (op.kind == "W" and op[1:] not in whole)
        assert held == 0
        assert most == max(
            extra[chunk]
            + sum(map(int.__mul__, counts, size))
            + sum(map(int.__mul__, pending, late))
            for chunk, counts, pending in found
        )


def most_pending(schedule: str, p: int, v: int, m: int) -> list[int]:
    """Largest number of micro-batches that wait for their W, on each rank."""
    of_ranks = peaks(schedule, p, v, m)
    return [max(sum(peak.pending) for peak in found) for found in of_ranks]


def test_what_waits_for_its_weight_gradients() -> None:
    """Rank r of ZB-H1 delays W by r; where W follows its B only that one waits."""
    assert most_pending("1f1b", 4, 1, 16) == [0, 0, 0, 0]
    assert most_pending("interleaved", 4, 2, 16) == [0, 0, 0, 0]
    assert most_pending("zb-h1", 4, 1, 16) == [1, 2, 3, 4]
    assert most_pending("zb-v", 4, 2, 16)[0] == 1
    # the last r pairs of B of rank r come before any of their W
    assert most_pending("zb-v", 4, 2, 16) == [1, 3, 5, 7]

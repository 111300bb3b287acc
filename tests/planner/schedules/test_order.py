"""The operation orders are valid, complete and those of the frameworks."""

from itertools import product

import pytest

from planner.schedules import SCHEDULES, Op, operations, pipeline_graph

LEGAL = [
    (schedule, p, v, m)
    for schedule, p, v, m in product(
        SCHEDULES, (1, 2, 3, 4, 8), (1, 2, 3), (1, 2, 3, 4, 7, 8, 16, 24)
    )
    if v == 1 or (schedule == "interleaved" and p > 1 and m % p == 0)
]


@pytest.mark.parametrize(("schedule", "p", "v", "m"), LEGAL)
def test_every_operation_once_and_no_deadlock(
    schedule: str, p: int, v: int, m: int
) -> None:
    kinds = "FBW" if schedule == "zb-h1" else "FB"
    expected = sorted(product(kinds, range(m), range(v)))
    orders = operations(schedule, p, v, m)
    assert len(orders) == p
    for order in orders:
        assert sorted(order) == expected
        at = {op: place for place, op in enumerate(order)}
        for micro, chunk in product(range(m), range(v)):
            places = [at[Op(kind, micro, chunk)] for kind in kinds]  # type: ignore[arg-type]
            assert places == sorted(places)
    graph = pipeline_graph(
        schedule, p, v, m, overlap_gather=False, overlap_scatter=False, scatter_every=m
    )
    assert [len(stream) for stream in graph.streams] == [len(expected)] * p


def test_interleaved_is_megatrons_order() -> None:
    """Rank 1 of p=2, v=2, m=4 warms up with 2 (p-r-1) + (v-1) p = 2 forwards."""
    order = operations("interleaved", 2, 2, 4)[1]
    assert " ".join(f"{kind}{micro}{chunk}" for kind, micro, chunk in order) == (
        "F00 F10 F01 B01 F11 B11 F20 B00 F30 B10 F21 B21 F31 B31 B20 B30"
    )


def test_zb_h1_delays_w_by_the_rank() -> None:
    order = operations("zb-h1", 3, 1, 4)[1]
    assert " ".join(f"{kind}{micro}" for kind, micro, _ in order) == (
        "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3"
    )


def test_interleaved_with_one_chunk_is_1f1b() -> None:
    assert operations("interleaved", 4, 1, 7) == operations("1f1b", 4, 1, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1f1c", 2, 1, 2), "did you mean '1f1b'"),
        (("dualpipe", 2, 1, 2), "known: gpipe, 1f1b, interleaved, zb-h1"),
        (("interleaved", 4, 2, 6), r"m % p == 0, here 6 % 4 = 2; nearest: m=4 or 8"),
        (("interleaved", 4, 2, 3), r"nearest: m=4$"),
        (("interleaved", 1, 2, 4), "p > 1"),
        (("1f1b", 4, 2, 8), "p=4, v=2, m=8: only 'interleaved'"),
        (("gpipe", 0, 1, 1), "at least 1"),
    ],
)
def test_impossible_schedules_are_refused_with_their_numbers(
    arguments: tuple[str, int, int, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        operations(*arguments)

"""The operation orders are valid, complete and those of the frameworks."""

from itertools import pairwise, product

import pytest
from each import each

from planner.schedules import (
    SCHEDULES,
    SPLIT,
    Op,
    operations,
    pipeline_graph,
    placement,
)

LEGAL = [
    (schedule, p, v, m)
    for schedule, p, v, m in product(
        SCHEDULES, (1, 2, 3, 4, 8), (1, 2, 3), (1, 2, 3, 4, 7, 8, 16, 24)
    )
    if (v == 1 and schedule not in {"zb-v", "dualpipe-v", "dualpipe"})
    or (v > 1 and schedule == "interleaved" and p > 1 and m % p == 0)
    or (v == 2 and schedule == "zb-v")
    or (v == 2 and schedule == "dualpipe-v" and m >= 2 * p)
    or (v == 2 and schedule == "dualpipe" and p % 2 == m % 2 == 0 and m >= 2 * p)
]
PLAIN = {"P": "F", "H": "B"}
"""A paired forward is a forward, a held backward a backward."""


@each(("schedule", "p", "v", "m"), LEGAL)
def test_every_operation_once_and_no_deadlock(
    schedule: str, p: int, v: int, m: int
) -> None:
    kinds = "FBW" if schedule in SPLIT else "FB"
    micros = placement(schedule, p, v).micros(m)
    expected = sorted(product(kinds, range(micros), range(v)))
    orders = operations(schedule, p, v, m)
    assert len(orders) == p
    for order in orders:
        plain = [op._replace(kind=PLAIN.get(op.kind, op.kind)) for op in order]
        assert sorted(plain) == expected
        at = {op: place for place, op in enumerate(plain)}
        for micro, chunk in product(range(micros), range(v)):
            places = [at[Op(kind, micro, chunk)] for kind in kinds]  # type: ignore[arg-type]
            assert places == sorted(places)
    graph = pipeline_graph(
        schedule, p, v, m, overlap_gather=False, overlap_scatter=False, scatter_every=m
    )
    assert [len(stream) for stream in graph.streams] == [len(expected)] * p


def words(order: tuple[Op, ...]) -> str:
    return " ".join(f"{kind}{micro}{chunk}" for kind, micro, chunk in order)


def test_interleaved_is_megatrons_order() -> None:
    """Rank 1 of p=2, v=2, m=4 warms up with 2 (p-r-1) + (v-1) p = 2 forwards."""
    order = operations("interleaved", 2, 2, 4)[1]
    assert words(order) == (
        "F00 F10 F01 B01 F11 B11 F20 B00 F30 B10 F21 B21 F31 B31 B20 B30"
    )


def test_zb_h1_delays_w_by_the_rank() -> None:
    order = operations("zb-h1", 3, 1, 4)[1]
    assert " ".join(f"{kind}{micro}" for kind, micro, _ in order) == (
        "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3"
    )


@each(("schedule", "p", "v", "m"), LEGAL)
def test_what_runs_as_one_stands_together(
    schedule: str, p: int, v: int, m: int
) -> None:
    """After P an H of the other chunk, after H its own W."""
    for order in operations(schedule, p, v, m):
        for op, after in pairwise(order):
            if op.kind == "P":
                assert (after.kind, after.chunk) == ("H", 1 - op.chunk)
            if op.kind == "H":
                assert after == op._replace(kind="W")
        assert order[-1].kind not in {"P", "H"}


def test_zb_v_is_pytorchs_order() -> None:
    """Rank 1 of p=2, m=3, as ScheduleZBVZeroBubble prints it, I as B."""
    order = operations("zb-v", 2, 2, 3)[1]
    assert words(order) == (
        "F00 F01 F10 F11 B01 W01 F20 B00 W00 F21 B11 W11 B10 B21 B20 W10 W21 W20"
    )


def test_dualpipe_v_is_pytorchs_order() -> None:
    """Rank 0 of p=2, m=4, as ScheduleDualPipeV prints it, I as B."""
    order = operations("dualpipe-v", 2, 2, 4)[0]
    assert words(order) == (
        "F00 F10 F20 F01 B01 W01 F11 P30 H11 W11 P21 H00 W00 H21 W21 P31 H10 W10 "
        "H31 W31 B20 W20 B30 W30"
    )


def test_dualpipe_is_dualpipe_v_there_and_back() -> None:
    """Rank p - 1 - r does what rank r does with its chunks swapped."""
    orders = operations("dualpipe", 4, 2, 8)
    assert orders[:2] == operations("dualpipe-v", 2, 2, 4)
    for order, mirrored in zip(orders, orders[::-1], strict=True):
        assert [op._replace(chunk=1 - op.chunk) for op in order] == list(mirrored)


def test_interleaved_with_one_chunk_is_1f1b() -> None:
    assert operations("interleaved", 4, 1, 7) == operations("1f1b", 4, 1, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1f1c", 2, 1, 2), "did you mean '1f1b'"),
        (("pipedream", 2, 1, 2), "known: gpipe, 1f1b, interleaved, zb-h1, zb-v"),
        (("dualpipe", 2, 1, 4), r"two chunks per rank; allowed: v=2"),
        (("zb-v", 2, 3, 4), r"two chunks per rank; allowed: v=2"),
        (("dualpipe", 3, 2, 7), r"even p and m; nearest: p=4, m=8"),
        (("dualpipe", 4, 2, 6), r"m >= 2 p; nearest: m=8"),
        (("dualpipe-v", 4, 2, 7), r"m >= 2 p; nearest: m=8"),
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

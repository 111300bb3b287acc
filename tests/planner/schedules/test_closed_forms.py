"""Closed forms equal the simulator where they say so, and refuse elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx  # noqa: PT013 - reads like the formula

from planner.schedules import (
    bubble_fraction,
    bubble_ratio,
    interleaved_lower_bound,
    lower_bound_1f1b,
    makespan,
    operations,
    p2p_delay,
    pipeline_graph,
    uniform_makespan,
    upper_bound_1f1b,
)

CHUNK = 1000


def simulate(
    schedule: str,
    p: int,
    v: int,
    m: int,
    times: tuple[list[int], list[int], list[int]],
    p2p: int = 0,
) -> int:
    """Makespan of forwards and backwards alone."""
    graph = pipeline_graph(
        schedule, p, v, m, overlap_gather=True, overlap_scatter=True, scatter_every=m
    )
    f, b, w = times
    rest = [0] * (graph.slots.n_slots - 3 * p * v)
    return makespan(graph, [*f, *b, *w, *rest], p2p)


def uniform(
    schedule: str, p: int, v: int, m: int, f: int, b: int, w: int = 0, p2p: int = 0
) -> int:
    s = p * v
    return simulate(schedule, p, v, m, ([f] * s, [b] * s, [w] * s), p2p)


@pytest.mark.parametrize(
    ("p", "m", "v", "ideal", "total"),
    [
        (8, 64, 1, 10.94, 9.86),
        (8, 64, 3, 3.65, 3.52),
        (35, 280, 3, 4.05, None),
        (4, 8, 1, 37.5, 27.3),
        (8, 32, 2, 10.94, None),
    ],
)
def test_published_bubbles(
    p: int, m: int, v: int, ideal: float, total: float | None
) -> None:
    assert 100 * bubble_ratio("interleaved", p, v, m, 1, 2) == approx(ideal, abs=0.006)
    if total is not None:
        fraction = bubble_fraction("interleaved", p, v, m, 1, 2)
        assert 100 * fraction == approx(total, abs=0.05)
    step = uniform("interleaved", p, v, m, CHUNK, 2 * CHUNK)
    assert 100 * (step / (m * v * 3 * CHUNK) - 1) == approx(ideal, abs=0.006)


def test_worked_makespans() -> None:
    """F=1, B=2, p=8, m=32; for zb-h1 F = B = W = 1."""
    assert uniform("1f1b", 8, 1, 32, 1, 2) == 117
    assert uniform("interleaved", 8, 2, 32, 1, 2) / 2 == 106.5
    assert uniform("interleaved", 8, 4, 32, 1, 2) / 4 == 101.25
    assert uniform("zb-h1", 8, 1, 32, 1, 1, 1) == 103


def test_worked_makespans_with_p2p() -> None:
    """F=1, B=2 of a rank and a transfer of 0.1."""
    assert uniform("1f1b", 4, 1, 64, 10, 20, p2p=1) == 2110
    assert uniform("1f1b", 8, 1, 64, 10, 20, p2p=1) == 2254
    assert uniform("1f1b", 8, 1, 256, 10, 20, p2p=1) == 8350
    assert uniform("interleaved", 8, 2, 64, 10, 20, p2p=2) / 20 == 202.5 + 3.0


@given(
    st.sampled_from(["gpipe", "1f1b", "interleaved", "zb-h1"]),
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 30),
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)),
    st.integers(0, 10),
)
def test_equal_stages_match_the_closed_form(
    schedule: str,
    p: int,
    v: int,
    m: int,
    extra: tuple[int, int, int],
    p2p: int,
) -> None:
    """Chunk times f >= w, b >= w, a transfer of at most a tenth of a chunk."""
    if schedule != "interleaved" or p == 1:
        v = 1
    w = 100 + extra[2] if schedule == "zb-h1" else 0
    f, b = 100 + extra[0] + extra[2], 100 + extra[1] + extra[2]
    if schedule == "zb-h1":
        m, p2p = max(m, p), 0
    elif v > 1:
        m = p * -(-m // p)
    closed = uniform_makespan(schedule, p, v, m, f * v, b * v, w * v)
    if schedule != "zb-h1":
        closed += p2p_delay(schedule, p, v, m, p2p)
    assert uniform(schedule, p, v, m, f, b, w, p2p) == closed


def test_p2p_in_1f1b_where_p_divides_m() -> None:
    for p in (2, 4, 8):
        assert p2p_delay("1f1b", p, 1, 4 * p, 1.0) == 2 * (4 * (p - 1) + p - 2)


def test_zb_h1_has_a_third_of_the_bubble() -> None:
    third = bubble_ratio("zb-h1", 8, 1, 32, 1, 1, 1)
    assert third == approx(bubble_ratio("1f1b", 8, 1, 32, 1, 2) / 3)


@pytest.mark.parametrize(("m", "w"), [(7, 1), (32, 1.5)])
def test_zb_h1_refuses_where_its_form_is_not_exact(m: int, w: float) -> None:
    with pytest.raises(ValueError, match="simulate instead"):
        uniform_makespan("zb-h1", 8, 1, m, 1, 2, w)


@pytest.mark.parametrize(
    ("schedule", "v"), [("zb-h1", 1), ("zb-v", 2), ("dualpipe-v", 2), ("dualpipe", 2)]
)
def test_split_backwards_have_no_form_of_p2p(schedule: str, v: int) -> None:
    with pytest.raises(ValueError, match=f"{schedule} has no closed form"):
        p2p_delay(schedule, 4, v, 8, 1.0)


@given(
    st.sampled_from(["zb-v", "dualpipe-v", "dualpipe"]),
    st.integers(1, 6),
    st.integers(0, 12),
    st.integers(1, 60),
    st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_equal_stages_of_a_v_match_the_closed_form(
    schedule: str, p: int, more: int, w: int, extra: tuple[int, int]
) -> None:
    """Chunk times w <= f <= b for zb-v, w <= f = b for the others."""
    f = w + extra[0]
    if schedule == "zb-v":
        b, m = f + extra[1], 2 * p - 1 + more
    else:
        b, m = f, 2 * p + more
    both = schedule == "dualpipe"
    if both:
        p, m = 2 * p, 4 * p + 2 * more
    share = 1 if both else 2
    closed = uniform_makespan(schedule, p, 2, m, f * share, b * share, w * share)
    assert uniform(schedule, p, 2, m, f, b, w) == closed


@pytest.mark.parametrize(
    ("p", "m", "f", "b", "w"), [(4, 12, 1, 1, 1), (8, 20, 3, 3, 2), (16, 32, 5, 5, 1)]
)
def test_dualpipe_has_its_authors_bubble(
    p: int, m: int, f: int, b: int, w: int
) -> None:
    """(PP / 2 - 1)(F&B + B - 3 W), with B a whole backward and F&B = F + B."""
    whole = b + w
    published = (p // 2 - 1) * (f + whole + whole - 3 * w)
    assert uniform("dualpipe", p, 2, m, f, b, w) == m * (f + whole) + published
    halves = uniform("dualpipe-v", p // 2, 2, m, f, b, w)
    assert halves == 2 * m * (f + whole) + published


def test_zb_v_has_half_the_bubble_of_zb_h1() -> None:
    """Its ranks never pause; rank r only starts r half stages late."""
    sixth = bubble_ratio("zb-v", 8, 2, 32, 1, 1, 1)
    assert sixth == approx(bubble_ratio("1f1b", 8, 1, 32, 1, 2) / 6)
    assert uniform("zb-v", 8, 2, 32, 1, 1, 1) == 6 * 32 + 7


@pytest.mark.parametrize(
    ("schedule", "m", "f", "b", "w"),
    [
        ("zb-v", 14, 1, 1, 1),
        ("zb-v", 32, 2, 1, 1),
        ("zb-v", 32, 1, 2, 1.5),
        ("dualpipe-v", 32, 1, 2, 1),
        ("dualpipe", 32, 1, 1, 2),
    ],
)
def test_a_v_refuses_where_its_form_is_not_exact(
    schedule: str, m: int, f: float, b: float, w: float
) -> None:
    with pytest.raises(ValueError, match="simulate instead"):
        uniform_makespan(schedule, 8, 2, m, f, b, w)


times_of = st.integers(40, 100)


@given(st.integers(1, 8), st.integers(1, 20), st.sampled_from([0, 3, 25]), st.data())
def test_1f1b_of_unequal_stages_is_between_its_bounds(
    p: int, m: int, p2p: int, data: st.DataObject
) -> None:
    """Cases m < p, m = p and m > p, with and without p2p, spread up to 2.5."""
    stages = st.lists(times_of, min_size=p, max_size=p)
    f, b = data.draw(stages), data.draw(stages)
    step = simulate("1f1b", p, 1, m, (f, b, [0] * p), p2p)
    assert lower_bound_1f1b(f, b, p2p, m) <= step <= upper_bound_1f1b(f, b, p2p, m)


def test_1f1b_bounds_are_tight_for_equal_stages() -> None:
    f, b = [10] * 4, [20] * 4
    assert lower_bound_1f1b(f, b, 0, 8) == 330 == upper_bound_1f1b(f, b, 0, 8)


def test_adding_both_gaps_when_m_is_small_would_be_wrong() -> None:
    """With one micro-batch the bound is exactly the way there and back."""
    assert lower_bound_1f1b([1, 2, 3], [4, 5, 6], 1, 1) == 25
    assert simulate("1f1b", 3, 1, 1, ([1, 2, 3], [4, 5, 6], [0] * 3), 1) == 25


@given(
    st.integers(2, 5),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([0, 7]),
    st.data(),
)
def test_interleaved_is_above_its_bound(
    p: int, v: int, groups: int, p2p: int, data: st.DataObject
) -> None:
    stages = st.lists(times_of, min_size=p * v, max_size=p * v)
    f, b = data.draw(stages), data.draw(stages)
    step = simulate("interleaved", p, v, groups * p, (f, b, [0] * p * v), p2p)
    by_rank = [f[r::p] for r in range(p)], [b[r::p] for r in range(p)]
    bound = interleaved_lower_bound(*by_rank, p2p, groups * p)
    assert bound <= step
    assert operations("interleaved", p, v, groups * p)[0][0].chunk == 0


def test_interleaved_bound_is_the_work_of_the_last_rank_and_the_way_to_it() -> None:
    f, b = [[1, 5], [2, 6]], [[3, 5], [4, 8]]
    assert interleaved_lower_bound(f, b, 1, 4) == (1 + 3 + 2) + 4 * (2 + 6 + 4 + 8)

"""Clocks and messages give the longest path of the operation graph."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.schedules import (
    SCHEDULES,
    SPLIT,
    V_SHAPED,
    Slots,
    makespan,
    pipeline_graph,
    placement,
)
from planner.specs.layouts.layout import Layout
from planner.verify.clocks.clock import Clocks, time_violations

NAMES = ("forward", "backward", "gather", "scatter", "optimizer", "weight")
TIMES = st.integers(0, 50)


def prices(shape: dict[str, Any], units: list[list[int]], **fields: Any) -> Any:
    """Stand-in for Prices: one unit on every virtual stage."""
    profile = SimpleNamespace(
        overlap_param_gather=fields.pop("overlap_gather"),
        overlap_grad_reduce=fields.pop("overlap_scatter"),
    )
    edges = fields.pop("edges")
    return SimpleNamespace(
        layout=Layout(**shape),
        stages=[[SimpleNamespace(**dict(zip(NAMES, u, strict=True)))] for u in units],
        edges=lambda stage: edges[stage],
        pricing=SimpleNamespace(profile=profile),
        **fields,
    )


@st.composite
def steps(draw: st.DrawFn) -> Any:
    """Any schedule, any shape, any whole times."""
    schedule = draw(st.sampled_from(SCHEDULES))
    pp = draw(st.integers(1, 5))
    chunks = schedule == "interleaved" and pp > 1
    vpp = draw(st.integers(1, 3)) if chunks else 1
    micro = draw(st.integers(1, 3)) * pp if chunks else draw(st.integers(1, 9))
    if schedule in V_SHAPED:
        vpp, pp = 2, (pp + pp % 2 if schedule == "dualpipe" else pp)
        micro = micro if schedule == "zb-v" else 2 * (micro + pp)
    shape = {"pp": pp, "vpp": vpp, "grad_accum": micro, "schedule": schedule}
    depth = placement(schedule, pp, vpp).depth
    units = [[draw(TIMES) for _ in NAMES[:-1]] for _ in range(depth)]
    for unit in units:
        unit.append(draw(st.integers(0, unit[1])))
    # first and last unit of a stage are part of its gather and scatter
    edges = [(draw(st.integers(0, u[2])), draw(st.integers(0, u[3]))) for u in units]
    return prices(
        shape,
        units,
        edges=edges,
        overlap_gather=draw(st.booleans()),
        overlap_scatter=draw(st.booleans()),
        scatter_every=draw(st.integers(1, micro)),
        p2p=draw(TIMES) if pp > 1 else 0,
        overhead=draw(TIMES),
    )


def longest_path(plan: Any) -> int:
    shape, profile = plan.layout, plan.pricing.profile
    graph = pipeline_graph(
        shape.schedule,
        shape.pp,
        shape.vpp,
        shape.grad_accum,
        overlap_gather=profile.overlap_param_gather,
        overlap_scatter=profile.overlap_grad_reduce,
        scatter_every=plan.scatter_every,
    )
    slots = Slots(shape.pp, shape.vpp)
    x = [0] * slots.n_slots
    place = placement(shape.schedule, shape.pp, shape.vpp)
    for stage in range(place.stages):
        (unit,) = plan.stages[stage % place.depth]
        late = unit.weight * (shape.schedule in SPLIT)
        x[slots.f(stage)], x[slots.b(stage)] = unit.forward, unit.backward - late
        x[slots.w(stage)] = late
        x[slots.gather(stage)], x[slots.scatter(stage)] = unit.gather, unit.scatter
        x[slots.first(stage)], x[slots.last(stage)] = plan.edges(stage % place.depth)
        x[slots.opt(place.rank(stage))] += unit.optimizer
    for rank in range(shape.pp):
        x[slots.opt(rank)] += plan.overhead
    return makespan(graph, x, plan.p2p)


@settings(deadline=None)
@given(steps())
def test_the_clocks_take_the_longest_path(plan: Any) -> None:
    """Two ways to the same whole number, for every schedule and overlap."""
    assert Clocks(plan).step() == longest_path(plan)


def by_hand(**changes: Any) -> Any:
    """1f1b of two stages: F 2 and 3, B 4 and 6, p2p 1, two micro-batches."""
    fields = {
        "edges": [(1, 1), (2, 2)],
        "overlap_gather": True,
        "overlap_scatter": True,
        "scatter_every": 2,
        "p2p": 1,
        "slowdown": 1.0,
        "overhead": 0,
    }
    units = [[2, 4, 1, 5, 7, 1], [3, 6, 2, 2, 9, 2]]
    shape = {"pp": 2, "grad_accum": 2, "schedule": changes.pop("schedule", "1f1b")}
    return prices(shape, units, **(fields | changes))


def test_a_step_by_hand() -> None:
    """Rank 1 computes 3 (+1+2) to 24 without a pause once its input is there.

    F00 1-3, F01 3-5; F10 4-7, B10 7-13, F11 13-16, B11 16-22; B00 14-18,
    B01 23-27 with its scatter 23-28; then the longer optimizer step, 9.
    """
    assert Clocks(by_hand()).step() == 28 + 9


def test_host_work_follows_the_longest_optimizer_step() -> None:
    assert Clocks(by_hand(overhead=5)).step() == 28 + 9 + 5


def test_without_overlap_gathers_come_before_and_scatters_after() -> None:
    """F00 1-3, F10 4-7 as before; B01 ends at 27, its scatter 5 later."""
    plan = by_hand(overlap_gather=False, overlap_scatter=False)
    assert Clocks(plan).step() == 32 + 9


def test_weight_gradients_come_later_where_the_schedule_splits_them() -> None:
    """Of rank 1's backwards of 6, 2 are weight gradients, which none waits for.

    Rank 1 delays its W by one: F10 4-7, B10 7-11, F11 11-14, B11 14-18, W10 18-20,
    W11 20-22. Rank 0, of B 3 and W 1: B00 12-15, W00 15-16, B01 19-22, and W01 22-23
    with its scatter 22-27.
    """
    assert Clocks(by_hand(schedule="zb-h1")).step() == 27 + 9


@pytest.mark.parametrize("claim", [36.99e-9, 37.01e-9, float("nan")])
def test_another_step_is_objected_to(claim: float) -> None:
    (sentence,) = time_violations(by_hand(), claim)
    assert "3.7e-08 s by the clocks" in sentence


def test_the_true_step_is_not_objected_to() -> None:
    assert list(time_violations(by_hand(slowdown=1.5), 1.5 * 37e-9)) == []

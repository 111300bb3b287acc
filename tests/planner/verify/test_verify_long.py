"""Long steps are verified without their middle, to the same whole number."""

from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_verify_clock import NAMES, prices
from tiers import some

from planner.schedules import SCHEDULES, V_SHAPED, operations, placement
from planner.specs.layouts.layout import Layout
from planner.verify.clocks import orders as orders_module
from planner.verify.clocks.clock import Clocks
from planner.verify.clocks.orders import orders_of
from planner.verify.clocks.recurrence import Recurrence
from planner.verify.memory import _replay

FOLDED = [name for name in SCHEDULES if name != "gpipe"]


@st.composite
def long_steps(draw: st.DrawFn) -> Any:
    """A step of many micro-batches; ranks alike, nearly alike, or at random."""
    schedule = draw(st.sampled_from(FOLDED))
    pp = draw(st.integers(1, 4))
    pp += pp % 2 if schedule == "dualpipe" else 0
    vpp = draw(st.integers(1, 2)) if schedule == "interleaved" and pp > 1 else 1
    vpp = 2 if schedule in V_SHAPED else vpp
    every = draw(st.sampled_from([1, 2, pp, 10**6]))
    accum = pp * 2 * draw(st.integers(20, 60)) + draw(st.integers(0, 3)) * (vpp == 1)
    shape = {"pp": pp, "vpp": vpp, "grad_accum": accum, "schedule": schedule}
    depth = placement(schedule, pp, vpp).depth
    base, most = draw(st.sampled_from([(0, 0), (0, 40), (1000, 1), (1000, 0)]))
    times = st.integers(base, base + most)
    units = [[draw(times) for _ in NAMES[:-1]] for _ in range(depth)]
    for unit in units:
        unit.append(draw(st.integers(0, unit[1])))
    edges = [(draw(st.integers(0, u[2])), draw(st.integers(0, u[3]))) for u in units]
    return prices(
        shape,
        units,
        edges=edges,
        overlap_gather=draw(st.booleans()),
        overlap_scatter=draw(st.booleans()),
        scatter_every=every,
        p2p=draw(st.integers(0, 50)) if pp > 1 else 0,
        overhead=3,
    )


@pytest.fixture(autouse=True)
def folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even short steps are taken as long ones."""
    monkeypatch.setattr(orders_module, "LONG", 1)


@settings(
    deadline=None,
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(long_steps())
def test_clocks_that_skip_end_when_those_that_do_not_end(plan: Any) -> None:
    quick, slow = Clocks(plan), Clocks(plan)
    slow.same.more = False
    assert quick.step() == slow.step()


def test_the_middle_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of a million micro-batches takes as many events as a short one."""
    moved: list[int] = []
    move = Recurrence._move

    def note(self: Recurrence, periods: int, time: int) -> None:
        moved.append(periods)
        move(self, periods, time)

    monkeypatch.setattr(Recurrence, "_move", note)
    units = [[20, 40, 1, 5, 7, 1], [30, 60, 2, 2, 9, 2]]
    shape = {"pp": 2, "grad_accum": 2**20, "schedule": "1f1b"}
    plan = prices(
        shape,
        units,
        edges=[(1, 1), (2, 2)],
        overlap_gather=True,
        overlap_scatter=True,
        scatter_every=2**20,
        p2p=1,
        overhead=0,
    )
    # The second rank is never idle: F and B of all, after the first's gather and F.
    begin, end = 1 + 20 + 1, 1 + 40
    step = Clocks(plan).step()
    busy = 2**20 * 90
    assert busy + begin < step < busy + begin + end + 20
    assert moved[0] > 2**17


@pytest.mark.parametrize("schedule", FOLDED)
@pytest.mark.parametrize("pp", [1, 2, 3, *some((4, 6), 2)])
def test_orders_without_their_middle_are_the_orders(schedule: str, pp: int) -> None:
    pp += pp % 2 if schedule == "dualpipe" else 0
    vpp = 2 if schedule in V_SHAPED else 3 if schedule == "interleaved" else 1
    vpp = 1 if pp == 1 and schedule == "interleaved" else vpp
    for every, accum in ((1, 24), (2, 30), (10**6, 40)):
        layout = Layout(
            pp=pp, vpp=vpp, grad_accum=2 * accum * pp, schedule=schedule, stages=()
        )
        found = orders_of(layout, every)
        whole = operations(schedule, pp, vpp, layout.grad_accum)
        assert found[0].repeats > 2
        for order, each in zip(found, whole, strict=True):
            assert tuple(map(order.at, range(len(order)))) == each


class _Unit:
    """A stage that holds an odd number of blocks for each thing."""

    static, saved, transient, accumulated, pending = 7, 11, 13, 17, 19


@pytest.mark.parametrize("schedule", FOLDED)
def test_memory_without_the_middle_is_that_of_the_whole(schedule: str) -> None:
    pp, vpp = 4, 2 if schedule in (*V_SHAPED, "interleaved") else 1
    layout = Layout(pp=pp, vpp=vpp, grad_accum=320, schedule=schedule, stages=())
    chunks: Any = [[_Unit()] for _ in range(vpp)]
    whole = operations(schedule, pp, vpp, 320)
    for order, each in zip(orders_of(layout, 320), whole, strict=True):
        assert len(order.short) < len(each)
        assert _replay(chunks, order.short) == _replay(chunks, each)

"""A long step is a short one whose block repeats: the same whole numbers."""

from typing import NamedTuple

import numpy as np
import pytest
from each import each
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.schedules import (
    SCHEDULES,
    V_SHAPED,
    Graph,
    Slots,
    busy,
    critical_path,
    end_times,
    idle,
    makespan,
    peaks,
    pipeline_graph,
    rank_paths,
)
from planner.schedules import graph as graph_module
from planner.schedules import inflight as inflight_module
from planner.schedules.fold import folds, pays, short_step, squarings
from planner.schedules.simulator import critical_paths, makespans

FOLDED = [name for name in SCHEDULES if name != "gpipe"]


@pytest.fixture(autouse=True)
def short_steps_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold every step that has a shorter one, whether it pays or not."""

    def is_long(_p: int, _v: int, m: int, short: int, _period: int) -> bool:
        return short < m

    monkeypatch.setattr("planner.schedules.folding.is_long", is_long)
    monkeypatch.setattr(graph_module, "_CACHE", graph_module._Cache())


class Case(NamedTuple):
    """A schedule of many micro-batches, and several columns of durations."""

    schedule: str
    p: int
    v: int
    m: int
    scatter_every: int
    x: tuple[list[int], ...] = ()
    p2p: int = 0
    overlap_gather: bool = True
    overlap_scatter: bool = True

    def graph(self, *, whole: bool) -> Graph:
        return pipeline_graph(
            self.schedule,
            self.p,
            self.v,
            self.m,
            overlap_gather=self.overlap_gather,
            overlap_scatter=self.overlap_scatter,
            scatter_every=self.scatter_every,
            unfolded=whole,
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    schedule = draw(st.sampled_from(FOLDED))
    p = draw(st.integers(1, 5))
    p += p % 2 if schedule == "dualpipe" else 0
    v = draw(st.integers(1, 3)) if schedule == "interleaved" and p > 1 else 1
    v = 2 if schedule in V_SHAPED else v
    every = draw(st.sampled_from([1, 2, 3, p, 10**6]))
    m = draw(st.integers(60, 300))
    m -= m % p if schedule == "interleaved" else m % 2 * (schedule == "dualpipe")
    columns = draw(durations(Slots(p, v))), draw(durations(Slots(p, v)))
    flags = draw(st.booleans()), draw(st.booleans())
    return Case(schedule, p, v, m, every, columns, draw(st.integers(0, 30)), *flags)


@st.composite
def durations(draw: st.DrawFn, slots: Slots) -> list[int]:
    """Ranks that are alike, nearly alike (a long transient), idle, or at random."""
    base, spread = draw(st.sampled_from([(0, 0), (0, 90), (10**6, 0), (10**6, 2)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return [*rng.integers(base, base + spread + 1, size=slots.zero).tolist(), 0]


@settings(deadline=None, max_examples=examples(60))
@given(cases())
def test_a_folded_step_takes_as_long_as_the_whole(case: Case) -> None:
    short, whole = case.graph(whole=False), case.graph(whole=True)
    assert whole.fold is None
    steps, paths = critical_paths(short, np.array(case.x).T, case.p2p)
    assert makespans(short, np.array(case.x).T, case.p2p).tolist() == steps.tolist()
    for x, step, path in zip(case.x, steps.tolist(), paths, strict=True):
        assert makespan(short, x, case.p2p) == makespan(whole, x, case.p2p) == step
        assert critical_path(short, x, case.p2p).value(x, case.p2p) == step
        assert path.value(x, case.p2p) == step
        assert busy(short, x) == busy(whole, x)
        assert idle(short, x, case.p2p) == idle(whole, x, case.p2p)


@settings(deadline=None, max_examples=examples(40))
@given(cases(), st.integers(0, 40))
def test_paths_of_a_folded_step_are_paths_of_the_whole(case: Case, other: int) -> None:
    """Found with one column of durations, they bound the other, too."""
    short, whole = case.graph(whole=False), case.graph(whole=True)
    here, there = case.x
    found = [critical_path(short, here, case.p2p), *rank_paths(short, here, case.p2p)]
    assert len(found) == 1 + case.p
    for x, p2p in ((here, case.p2p), (there, other), (there, 0)):
        step = makespan(whole, x, p2p)
        assert all(path.value(x, p2p) <= step for path in found)


@settings(
    deadline=None,
    max_examples=examples(10),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cases(), st.sampled_from([1, 1 << 22]))
def test_cases_are_run_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch, case: Case, cells: int
) -> None:
    monkeypatch.setattr("planner.schedules.steady.CELLS", cells)
    x = np.array([*case.x, *case.x]).T
    steps, paths = critical_paths(case.graph(whole=False), x, case.p2p)
    alone = [makespan(case.graph(whole=True), one, case.p2p) for one in case.x]
    assert steps.tolist() == [*alone, *alone]
    lengths = [path.value(one, case.p2p) for path, one in zip(paths, x.T, strict=True)]
    assert lengths == steps.tolist()


@pytest.mark.parametrize(
    "p", [1, 2, 3, 4, *(pytest.param(p, marks=pytest.mark.slow) for p in (5, 8, 12))]
)
@each("schedule", FOLDED)
def test_every_schedule_but_gpipe_folds(schedule: str, p: int) -> None:
    p += p % 2 if schedule == "dualpipe" else 0
    v = 2 if schedule in V_SHAPED else 3 if schedule == "interleaved" and p > 1 else 1
    for every in (1, p, 10**6):
        for overlap in (False, True):
            for more in (0, 1, 2):
                m = 40 * p + 120 + 2 * p * more
                case = Case(schedule, p, v, m, every, overlap_scatter=overlap)
                if schedule == "interleaved":
                    case = case._replace(m=m // p * p)
                fold = case.graph(whole=False).fold
                assert fold is not None
                assert fold.repeats > 1
                assert len(fold.cut) <= 4 * p


def test_a_million_micro_batches_are_what_the_slowest_rank_does() -> None:
    """1F1B whose second rank is never idle: fill, 2^20 times F and B, drain."""
    m = 2**20
    case = Case("1f1b", 2, 1, m, m, overlap_gather=False, overlap_scatter=False)
    graph, slots = case.graph(whole=False), Slots(2, 1)
    x = [0] * slots.n_slots
    x[slots.f(0)], x[slots.b(0)], x[slots.f(1)], x[slots.b(1)] = 2, 3, 5, 7
    assert makespan(graph, x, 0) == 2 + m * 12 + 3
    path = critical_path(graph, x, 0)
    assert path.counts[[slots.f(0), slots.b(0)]].tolist() == [1, 1]
    assert path.counts[[slots.f(1), slots.b(1)]].tolist() == [m, m]
    assert busy(graph, x) == [m * 5, m * 12]
    # The reduce-scatters of all groups come at the end, one after the other.
    x[slots.scatter(1)] = 11
    grouped = case._replace(scatter_every=1).graph(whole=False)
    assert makespan(grouped, x, 0) == 2 + m * 12 + m * 11


def test_a_folded_graph_has_no_ends_of_its_operations() -> None:
    graph = Case("1f1b", 2, 1, 99, 99).graph(whole=False)
    with pytest.raises(ValueError, match="no node for every operation"):
        end_times(graph, [0] * graph.slots.n_slots, 0)


def test_gpipe_does_not_fold() -> None:
    assert Case("gpipe", 2, 1, 999, 9).graph(whole=False).fold is None
    assert short_step("gpipe", 2, 1, 10**6, None) == 10**6
    assert not folds("gpipe", 2, 1, 2**20, None)
    assert folds("gpipe", 2, 1, 2**18, None)


def test_a_step_folds_where_its_short_step_can_be_simulated() -> None:
    assert folds("1f1b", 64, 1, 2**20, None)
    assert folds("interleaved", 16, 8, 2**20, None)
    assert not folds("1f1b", 1024, 1, 2**20, None)
    assert not folds("1f1b", 8, 1, 2**20, 2**17)


def test_folding_pays_for_long_steps_of_few_ranks() -> None:
    assert pays(8, 1, 2**14, 40, 1)
    assert not pays(64, 1, 2**9, 260, 1)
    assert squarings(16, 2**20) > squarings(16, 2**6) >= 1
    assert squarings(512, 16) == 0


@pytest.mark.parametrize("schedule", FOLDED)
@pytest.mark.parametrize("p", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("v", [1, 2, 3])
def test_more_micro_batches_hold_no_more_in_flight(
    monkeypatch: pytest.MonkeyPatch, schedule: str, p: int, v: int
) -> None:
    """Peaks of a long step are those of its short one, entry by entry."""
    p += p % 2 if schedule == "dualpipe" else 0
    v = 2 if schedule in V_SHAPED else v if schedule == "interleaved" and p > 1 else 1
    for m in (12 * p, 14 * p, 12 * p + 10 * p + 2 * p * v):
        found = peaks.__wrapped__(schedule, p, v, m)
        with monkeypatch.context() as patch:
            patch.setattr(inflight_module, "short_step", lambda *shape: shape[3])
            assert found == peaks.__wrapped__(schedule, p, v, m)

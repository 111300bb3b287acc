"""Many steps at once have the ends and the paths that each has alone."""

import sys
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_simulator import Case, cases

from planner.schedules import critical_path, makespan, simulator, walks
from planner.schedules.simulator import critical_paths, makespans


@given(
    case=cases(),
    seed=st.integers(0, 5),
    cells=st.sampled_from([1, 64, 1 << 22]),
    pays=st.sampled_from([-1, 1 << 62]),
)
def test_every_case_has_the_step_and_the_path_that_it_has_alone(
    case: Case, seed: int, cells: int, pays: int
) -> None:
    """In blocks of any size; compiled, and as Python runs them."""
    graph, rng = case.graph(), np.random.default_rng(seed)
    x = np.stack([rng.permutation(case.x[:-1]) for _ in range(3)], axis=1)
    x = np.concatenate([x, np.zeros((1, 3), dtype=np.int64)])
    with patch.object(simulator, "CELLS", cells), patch.object(walks, "PAYS", pays):
        steps, paths = critical_paths(graph, x, case.p2p)
        assert makespans(graph, x, case.p2p).tolist() == steps.tolist()
    for one, step, path in zip(x.T.tolist(), steps.tolist(), paths, strict=True):
        same = critical_path(graph, one, case.p2p)
        assert step == makespan(graph, one, case.p2p) == path.value(one, case.p2p)
        assert (path.counts.tolist(), path.p2p) == (same.counts.tolist(), same.p2p)


@given(cases())
def test_no_cases_take_no_time(case: Case) -> None:
    graph = case.graph()
    none = np.zeros((graph.slots.n_slots, 0), dtype=np.int64)
    steps, paths = critical_paths(graph, none, case.p2p)
    assert len(steps) == len(paths) == len(makespans(graph, none, case.p2p)) == 0


def test_loops_are_compiled_once_there_is_much_to_walk() -> None:
    pytest.importorskip("numba")
    work = walks._Work()
    assert not work.loops(walks.PAYS).compiled
    assert work.loops(1).compiled


def test_without_numba_python_walks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert walks.compiled.__wrapped__() is walks.PLAIN


def test_loops_are_compiled_anew_where_no_folder_can_keep_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numba = pytest.importorskip("numba")
    made, asked = numba.njit, list[bool]()

    def njit(*loops: object, cache: bool = False) -> object:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return made(*loops)

    monkeypatch.setattr(numba, "njit", njit)
    assert walks.compiled.__wrapped__().compiled
    assert asked == [True, False] * 2

"""Many steps at once have the ends and the paths that each has alone."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_simulator import Case, cases

from planner.schedules import critical_path, makespan
from planner.schedules import levels as levels_module
from planner.schedules.levels import critical_paths, levels_of, makespans


@given(
    case=cases(),
    seed=st.integers(0, 5),
    cells=st.sampled_from([1, 64, 1 << 22]),
    alone=st.sampled_from([0, levels_module.ALONE]),
)
def test_every_case_has_the_step_and_the_path_that_it_has_alone(
    case: Case, seed: int, cells: int, alone: int
) -> None:
    """By level, in blocks of any size, and node by node."""
    graph, rng = case.graph(), np.random.default_rng(seed)
    x = np.stack([rng.permutation(case.x[:-1]) for _ in range(3)], axis=1)
    x = np.concatenate([x, np.zeros((1, 3), dtype=np.int64)])
    with patch.multiple(levels_module, CELLS=cells, ALONE=alone):
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


@given(cases())
def test_a_node_lies_above_what_it_waits_for(case: Case) -> None:
    graph = case.graph()
    levels = levels_of(graph)
    assert sorted(levels.node.tolist()) == list(range(len(graph)))
    covered = [i for level in levels.levels for i in range(level.start, level.stop)]
    assert covered == list(range(1, len(graph)))
    for level in levels.levels:
        assert max(level.first.max(), level.second.max()) < level.start

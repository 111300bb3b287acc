"""Boxes solved ahead in other processes: the same answers, whatever ends those."""

import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import inner_problems

from planner.search import processes
from planner.search.bounds.bounds import relax
from planner.search.bounds.paths import ShapePaths
from planner.search.processes import Pool, most_processes
from planner.search.solver import ahead as module
from planner.search.solver.ahead import Ahead, on_all_cores
from planner.search.solver.case_bounds import LoadTree
from planner.search.solver.dual import tighten
from planner.search.stop import Stop, resident_bytes
from planner.specs.table import StageCosts


def through(*given: Any) -> Any:
    """As it arrives in another process."""
    return pickle.loads(pickle.dumps(given))  # noqa: S301  # our own


class Elsewhere:
    """A pool that does some calls at once, some later or never, as it is drawn."""

    def __init__(self, fates: Iterator[int]) -> None:
        self.fates = fates

    def submit(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        future: Future[Any] = Future()
        fate = next(self.fates)
        if fate == 1:
            future.set_exception(RuntimeError("killed"))
        if fate > 2:
            far = through(function, *given)
            future.set_result(through(far[0](*far[1:]))[0])
        return future

    def close(self) -> None:
        """Nothing to end."""


@contextmanager
def with_pool(pool: object) -> Iterator[Ahead]:
    """A search that has boxes solved by a pool from the first box on."""
    with on_all_cores(Stop(), 2) as ahead:
        ahead.pool = pool  # type: ignore[assignment]
        yield ahead


def several(costs: StageCosts) -> list[StageCosts]:
    """Problems of one shape, whose boxes wait at the same time."""
    return [costs, replace(costs, p2p=costs.p2p + 1), replace(costs, p2p=0)]


def closed(problems: list[StageCosts]) -> list[object]:
    """What the trees of some problems find, the one with the least bound cut next."""
    shapes, trees = ShapePaths(), []
    for costs in problems:
        found = tighten(costs, relax(costs), None, shapes)
        trees.append(LoadTree(found.pool, found.bound, shapes))
    goal = 2 * int(max([1, *(t.bound for t in trees if t.bound < float("inf"))]))
    for _ in range(40):
        tree = min(trees, key=lambda each: (each.stuck, each.bound))
        if tree.stuck:
            break
        tree.refine(goal, goal)
    return [
        (tree.bound, tree.made, tree.solved, tree.best and tree.best.value)
        for tree in trees
    ]


@settings(max_examples=examples(30))
@given(inner_problems(), st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_answers_are_the_same_wherever_boxes_are_solved(
    costs: StageCosts, fates: list[int]
) -> None:
    """In the order asked for, ahead, too late, or not at all."""
    problems = several(costs)
    alone = closed(problems)
    drawn = (fates[at % len(fates)] for at in range(10**9))
    with with_pool(Elsewhere(drawn)):
        assert closed(problems) == alone


@pytest.mark.slow
def test_two_processes_find_and_prove_what_one_does() -> None:
    taken: list[Future[Any]] = []
    pool = Pool(1)

    @settings(max_examples=10, deadline=None)
    @given(inner_problems())
    def check(costs: StageCosts) -> None:
        problems = several(costs)
        alone = closed(problems)
        with patch.object(Ahead, "close", lambda _: None), with_pool(pool):
            assert closed(problems) == alone

    submit = pool.submit
    with patch.object(pool, "submit", lambda *a: taken.append(submit(*a)) or taken[-1]):
        try:
            check()
        finally:
            pool.close()
    assert any(future.done() and not future.exception() for future in taken)


def slow(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_killed_process_is_an_error_of_its_calls_and_a_closed_pool_leaves_none() -> (
    None
):
    pool = Pool(1)
    try:
        first = pool.submit(slow, 0.0).result(60)
        assert alive(first)
        lost = pool.submit(slow, 100.0)
        os.kill(first, signal.SIGKILL)
        assert lost.exception(60) is not None
    finally:
        pool.close()
    again = Pool(1)
    own = again.submit(slow, 0.0).result(60)
    again.submit(slow, 100.0)
    began = time.monotonic()
    again.close()
    assert not alive(own)
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_ctrl_c_is_left_to_the_process_that_searches() -> None:
    pool = Pool(1)
    try:
        process = pool.submit(slow, 0.0).result(60)
        os.kill(process, signal.SIGINT)
        assert pool.submit(slow, 0.0).result(60) == process
    finally:
        pool.close()


def test_processes_are_as_many_as_cores_and_memory_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "cpu_count", lambda: 64)
    assert most_processes(Stop()) == processes.MOST
    assert most_processes(Stop(memory=2 * resident_bytes())) == 1
    monkeypatch.setattr(processes, "cpu_count", lambda: 2)
    assert most_processes(Stop()) == 2


def test_no_process_starts_before_the_boxes_take_long() -> None:
    """Nor where there is one core."""
    with on_all_cores(Stop(), 1) as ahead, patch.object(module, "FROM", 0.0):
        ahead._hand_out(None)
        assert ahead.alone
        assert ahead.pool is None
    with on_all_cores(Stop(), 2) as ahead:
        ahead._hand_out(None)
        assert ahead.pool is None

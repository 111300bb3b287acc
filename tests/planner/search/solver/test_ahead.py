"""Other cores change when a program is solved, never its answer."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pytest
from hypothesis import Phase, find, settings
from strategies import inner_problems

from planner.search import processes
from planner.search.bounds.bounds import relax
from planner.search.bounds.boxes import Box
from planner.search.bounds.paths import ShapePaths
from planner.search.solver import ahead as module
from planner.search.solver.ahead import Ahead, Ticket, ahead, ahead_of
from planner.search.solver.box_program import Asked, Solved, solve_box
from planner.search.solver.dual import known_cuts
from planner.search.spread import alone
from planner.search.stop import INTERRUPTED, Stop, resident_bytes
from planner.specs.table import StageCosts

PATIENCE = 60.0
"""Time in which a process starts and answers. [s]"""


@dataclass(frozen=True)
class Asks:
    """Somebody who asks, until others have cut finer."""

    is_coarse: bool = False


HERE = Asks()


def is_large(costs: StageCosts) -> bool:
    return costs.pp > 1 and costs.stages < costs.layer_count and not costs.hosts


@pytest.fixture(scope="module")
def asked() -> Asked:
    """The program of all splits of a problem that has many."""
    quiet = settings(database=None, derandomize=True, phases=(Phase.generate,))
    costs = find(inner_problems(), is_large, settings=quiet)
    paths = tuple(known_cuts(costs, ShapePaths()).paths)
    return Asked(costs, paths, Box.of(costs), relax(costs).bound, None)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ahead]:
    """Two other cores, which start with the first question."""
    monkeypatch.setattr(module, "WARM_UP_S", -1.0)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 3)
    with ahead_of(Stop()) as them:
        assert ahead() is them
        yield them


def check_same(one: Solved, other: Solved) -> None:
    """Two answers to a question, field by field."""
    assert (one.bound, one.least, one.rest) == (other.bound, other.least, other.rest)
    assert one.at == other.at
    assert one.solution is not None
    assert other.solution is not None
    assert np.array_equal(one.solution.counts, other.solution.counts)
    assert one.multipliers[1] == other.multipliers[1]
    for mine, theirs in (
        (one.kept, other.kept),
        ([p.counts for p in one.paths], [p.counts for p in other.paths]),
        (
            [p.counts for p in one.multipliers[0]],
            [p.counts for p in other.multipliers[0]],
        ),
    ):
        assert len(mine) == len(theirs)
        assert all(map(np.array_equal, mine, theirs))


def finish(ticket: Ticket) -> None:
    """Wait until another core has answered."""
    until = time.monotonic() + PATIENCE
    while ticket.future is None or not ticket.future.done():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_another_core_gives_the_same_answer(asked: Asked, at_once: Ahead) -> None:
    """And paths that the question came with are not held twice."""
    ticket = at_once.offer(asked, 0.5, HERE)
    finish(ticket)
    assert ticket.found is None
    found = at_once.answer(ticket, Stop())
    check_same(found, solve_box(asked))
    own = {id(path) for path in asked.paths}
    keys = {(path.counts.tobytes(), path.p2p) for path in asked.paths}
    for path in (*found.paths, *found.multipliers[0]):
        assert (id(path) in own) == ((path.counts.tobytes(), path.p2p) in keys)


def test_what_is_asked_first_is_answered_first(asked: Asked) -> None:
    """Of what waits; what nobody wants any more is left out."""
    them, coarse = Ahead(Stop(memory=0.0)), Asks(is_coarse=True)
    gone = Asks()
    stale = [them.offer(asked, 0.0, who) for who in (coarse, gone)]
    del gone
    late, early, _ = (them.offer(asked, rank, HERE) for rank in (0.9, 0.1, 0.5))
    del _
    assert [them._next(), them._next(), them._next()] == [early, late, None]
    assert not any(ticket.is_taken for ticket in stale)


def test_questions_of_other_candidates_of_a_shape_wait(asked: Asked) -> None:
    """While there are any of another shape, or of the candidate that is looked at."""
    them, like = Ahead(Stop(memory=0.0)), replace(asked.costs, p2p=asked.costs.p2p + 1)
    other = replace(asked.costs, micro_batches=2 * asked.costs.micro_batches)
    first = them.offer(asked, 0.1, HERE)
    rival = them.offer(replace(asked, costs=like), 0.2, HERE)
    second = them.offer(replace(asked, costs=other), 0.3, HERE)
    sibling = them.offer(asked, 0.4, HERE)
    order = [them._next() for _ in range(5)]
    assert order == [first, second, sibling, rival, None]


def test_a_question_that_nobody_works_at_is_answered_here(asked: Asked) -> None:
    with alone(), ahead_of(Stop()) as them:
        them.spent = 1e9
        ticket = them.offer(asked, 0.5, HERE)
        assert them.pool is None
        check_same(them.answer(ticket, Stop()), solve_box(asked))
        assert ticket.future is None


def test_the_wait_for_an_answer_is_used_for_others(
    asked: Asked, at_once: Ahead
) -> None:
    first, *others = (at_once.offer(asked, 0.1 * at, HERE) for at in range(5))
    check_same(at_once.answer(first, Stop()), solve_box(asked))
    for ticket in others:
        check_same(at_once.answer(ticket, Stop()), solve_box(asked))
    assert any(ticket.found is not None for ticket in others)


def test_a_lost_process_costs_time_alone(asked: Asked, at_once: Ahead) -> None:
    tickets = [at_once.offer(asked, 0.1 * at, HERE) for at in range(3)]
    for process in list(at_once.pool._processes):
        os.kill(process, signal.SIGKILL)
    for ticket in (
        at_once.offer(asked, 0.0, HERE),
        *tickets,
        at_once.offer(asked, 0.0, HERE),
    ):
        check_same(at_once.answer(ticket, Stop()), solve_box(asked))
    assert at_once.is_off


def test_a_system_without_pools_costs_time_alone(
    asked: Asked, at_once: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(processes, "pool_of", refused)
    ticket = at_once.offer(asked, 0.5, HERE)
    assert at_once.is_off
    check_same(at_once.answer(ticket, Stop()), solve_box(asked))


def test_a_wait_ends_with_the_search(asked: Asked, at_once: Ahead) -> None:
    """The answer then claims nothing that was not known."""
    ticket = at_once.offer(asked, 0.5, HERE)
    found = at_once.answer(ticket, Stop(why=INTERRUPTED))
    assert found.solution is None
    assert found.bound == asked.bound


def test_no_process_is_left_and_none_starts_for_lack_of_memory(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WARM_UP_S", -1.0)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 3)
    with ahead_of(Stop()) as them:
        them.offer(asked, 0.5, HERE)
        processes = list(them.pool._processes)
        assert len(processes) == 2
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    with ahead_of(Stop(memory=resident_bytes() + 1e8)) as them:
        them.offer(asked, 0.5, HERE)
        assert them.pool is None
        assert them.is_off

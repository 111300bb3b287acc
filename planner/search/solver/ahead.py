"""Boxes solved ahead of the search on the other cores: the same answers, sooner."""

import heapq
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from planner.search.solver.box_program import Asked, Solved, solve_box
from planner.search.stop import Stop

if TYPE_CHECKING:
    from planner.search.processes import Pool

FROM = 3.0
"""Time in programs of boxes after which other processes join in: a process takes about
a second to start. [s]"""
LOOK = 0.05
"""Time between two looks at the limits while another process solves a box. [s]"""
DEPTH = 2
"""Boxes handed to each process: one to solve, one to go on with. [1]"""


class Open(Protocol):
    """A tree of boxes some of which wait for their program."""

    @property
    def kind(self) -> object:
        """Key of the trees of which only the first in turn keeps its boxes."""

    @property
    def share(self) -> float:
        """Share of the goal that the bound is; inf where no box counts."""

    def waiting(self) -> Iterator[tuple[float, object, Asked]]:
        """Boxes that wait.

        Yields:
            Share of the way to the goal, the box's node, and what is asked.
        """


@dataclass
class _Entry:
    """A box that is solved ahead, or was."""

    node: object
    """Kept, so that no other node gets its number."""
    asked: Asked
    future: Future[Solved]

    def answers(self, asked: Asked) -> bool:
        """Tell if this is the very question: the node has the rest of it."""
        return (self.asked.bound, self.asked.enough) == (asked.bound, asked.enough)


class Ahead:
    """Solves the boxes that are next in turn, in other processes.

    An answer depends on the question alone (:func:`solve_box`). So a search takes its
    boxes in the same order, and has the same answer, for any number of processes.
    """

    def __init__(self, stop: Stop, processes: int | None = None) -> None:
        self.stop, self.processes = stop, processes
        self.trees: WeakSet[Open] = WeakSet()
        self.entries: dict[int, _Entry] = {}
        self.pool: Pool | None = None
        self.alone = False
        self.spent = 0.0

    def solved(self, node: object, asked: Asked) -> Solved:
        """Answer of a box: from another process, or solved here and now.

        Args:
            node: The box's node in its tree.
            asked: The question.

        Returns:
            The answer.
        """
        self._hand_out(node)
        entry = self.entries.pop(id(node), None)
        if entry is not None and entry.answers(asked):
            found = self._taken(entry.future)
            if found is not None:
                return found
        return self._solve(asked)

    def _solve(self, asked: Asked) -> Solved:
        began = time.monotonic()
        found = solve_box(asked, self.stop)
        self.spent += time.monotonic() - began
        return found

    def _taken(self, future: Future[Solved]) -> Solved | None:
        """Result of another process; None where there will be none."""
        if future.cancel():
            return None
        while not future.done() and not self.stop.reached:
            if not self._help():
                wait([future], LOOK)
        if not future.done():
            return None
        try:
            return future.result()
        except Exception:  # noqa: BLE001  # whatever ends a process costs time alone
            self.close()
            return None

    def _help(self) -> bool:
        """Solve the next box that no process has, rather than wait."""
        for node, asked in self._next(1):
            done: Future[Solved] = Future()
            done.set_result(self._solve(asked))
            self.entries[id(node)] = _Entry(node, asked, done)
            return True
        return False

    def _hand_out(self, own: object) -> None:
        """Keep all processes busy with the boxes that come after this one."""
        if self.pool is None and not self.alone and self.spent >= FROM:
            self._start()
        if self.pool is None or self.processes is None:
            return
        under_way = sum(not entry.future.done() for entry in self.entries.values())
        room = DEPTH * (self.processes - 1) - under_way
        for node, asked in self._next(room, own):
            future = self.pool.submit(solve_box, asked)
            self.entries[id(node)] = _Entry(node, asked, future)

    def _start(self) -> None:
        # Few searches take long, and joblib takes long to import.
        from planner.search.processes import Pool, most_processes  # noqa: PLC0415

        self.processes = self.processes or most_processes(self.stop)
        self.alone = self.processes < 2
        self.pool = None if self.alone else Pool(self.processes - 1)

    def _next(self, most: int, own: object = None) -> list[tuple[object, Asked]]:
        """The boxes that are next in turn, the box itself and those under way aside.

        Answers that none asks for any more are forgotten.
        """
        first: dict[object, Open] = {}
        for tree in self.trees:
            other = first.get(kind := tree.kind)
            if other is None or tree.share < other.share:
                first[kind] = tree
        waiting = [each for tree in first.values() for each in tree.waiting()]
        wanted = {id(node): asked for _, node, asked in waiting}
        self.entries = {
            at: entry
            for at, entry in self.entries.items()
            if entry.node is own or (at in wanted and entry.answers(wanted[at]))
        }
        free = [x for x in waiting if id(x[1]) not in self.entries and x[1] is not own]
        chosen = heapq.nsmallest(most, free, key=lambda each: each[0])
        return [(node, asked) for _, node, asked in chosen]

    def close(self) -> None:
        """End all processes; from now on boxes are solved here."""
        self.alone = True
        self.entries.clear()
        if self.pool is not None:
            self.pool.close()
            self.pool = None


_AHEAD: ContextVar[Ahead | None] = ContextVar("_AHEAD", default=None)


@contextmanager
def on_all_cores(stop: Stop, processes: int | None = None) -> Iterator[Ahead]:
    """Let a search have its boxes solved ahead, by processes that end with the block.

    Args:
        stop: Rule of the search. [-]
        processes: Processes, this one among them; as many as there are cores by
            default. [1]

    Yields:
        What solves the boxes.
    """
    ahead = Ahead(stop, processes)
    token = _AHEAD.set(ahead)
    try:
        yield ahead
    finally:
        _AHEAD.reset(token)
        ahead.close()


def current() -> Ahead | None:
    """Hand back what solves the boxes of the search under way.

    Returns:
        None outside of a search.
    """
    return _AHEAD.get()

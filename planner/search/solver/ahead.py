"""Programs of boxes on other cores, before the search asks for them.

An answer is a function of its question alone. So neither the number of cores nor their
speed changes a search: a question that nobody answered yet is answered here.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from threading import RLock
from time import monotonic
from typing import Any, Protocol
from weakref import WeakSet, ref

from planner.schedules.simulator import Path
from planner.search.bounds.paths import lessons_of
from planner.search.solver.box_program import Asked, Solved, solve_box, unsolved
from planner.search.spread import is_alone
from planner.search.stop import Stop, resident_bytes

WARM_UP_S = 1.0
"""Time in programs after which it pays to start other processes, ours. [s]"""
WORKER_BYTES = 0.3e9
"""Memory of a process that solves programs. [B]"""
MOST_WORKERS = 16
"""Processes beside the search's own: it seldom knows of more boxes ahead, ours. [1]"""
LOOK_S = 0.05
"""Time between two looks at the limits while an answer is awaited. [s]"""


class Asker(Protocol):
    """Boxes of a candidate, which hand questions in."""

    @property
    def is_coarse(self) -> bool:
        """True where others have cut finer: it will ask other questions."""
        ...


class Ticket:
    """A question that was handed in, and its answer once there is one."""

    def __init__(self, asked: Asked, asker: Asker) -> None:
        self.asked, self.asker, self.is_taken = asked, ref(asker), False
        self.shape = lessons_of(asked.costs)
        self.future: Future[Solved] | None = None
        self.found: Solved | None = None

    @property
    def is_stale(self) -> bool:
        """True where nobody will ask it any more."""
        asker = self.asker()
        return asker is None or asker.is_coarse

    def rivals(self, other: "Ticket") -> bool:
        """Tell if another question is of another candidate of the same shape."""
        one, two = self.asked.costs, other.asked.costs
        return one is not two and self.shape == other.shape


_Entry = tuple[float, int, ref[Ticket]]
"""Rank, number and ticket of a question that waits. [-]"""


class Ahead:
    """Questions that other processes answer, those first that are asked first.

    Processes start once programs have taken a while. A process that is lost, or too
    little memory for one, costs time alone.
    """

    def __init__(self, stop: Stop) -> None:
        """Start nothing yet."""
        self.stop, self.spent = stop, 0.0
        self.open: WeakSet[Ticket] = WeakSet()
        self.waiting: list[_Entry] = []
        self.offered, self.running, self.workers = 0, 0, 0
        self.pool: Any = None
        self.is_off, self.lock = is_alone(), RLock()

    def offer(self, asked: Asked, rank: float, asker: Asker) -> Ticket:
        """Hand a question in that will be asked before long."""
        ticket = Ticket(asked, asker)
        with self.lock:
            if self.is_off:
                return ticket
            self.offered += 1
            heapq.heappush(self.waiting, (rank, self.offered, ref(ticket)))
            if self.pool is None and self.spent > WARM_UP_S:
                self._start()
            self._feed()
        return ticket

    def answer(self, ticket: Ticket, stop: Stop) -> Solved:
        """Answer a question, or wait for its answer and answer others meanwhile."""
        if self._takes(ticket):
            self._solve(ticket, stop)
        while ticket.future is not None and not ticket.future.done():
            if stop.reached:
                return unsolved(ticket.asked)
            other = self._next()
            if other is None:
                wait([ticket.future], LOOK_S)
            else:
                self._solve(other, stop)
        with self.lock:
            self.open.discard(ticket)
        return ticket.found or self._fetched(ticket, stop)

    def close(self) -> None:
        """End all processes, whatever they are at."""
        with self.lock:
            self.is_off, pool, self.pool = True, self.pool, None
            self.waiting.clear()
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=True)

    def _takes(self, ticket: Ticket) -> bool:
        """Take a question on, unless somebody works at it or has answered it."""
        with self.lock:
            is_free, ticket.is_taken = not ticket.is_taken, True
            self.open.add(ticket)
        return is_free

    def _next(self) -> Ticket | None:
        """The next question that nobody works at, taken on; None without any.

        What one candidate learns bounds others of its shape, which then ask less. So
        their questions wait while there are any of other shapes.
        """
        later: list[tuple[_Entry, Ticket]] = []
        chosen = None
        with self.lock:
            while self.waiting and chosen is None:
                entry = heapq.heappop(self.waiting)
                ticket = entry[2]()
                if ticket is None or ticket.is_taken or ticket.is_stale:
                    continue
                if any(each.rivals(ticket) for each in self.open):
                    later.append((entry, ticket))
                else:
                    chosen = ticket
            if chosen is None and later:
                _, chosen = later.pop(0)
            for entry, _ in later:
                heapq.heappush(self.waiting, entry)
            if chosen is not None:
                self._takes(chosen)
        return chosen

    def _solve(self, ticket: Ticket, stop: Stop) -> None:
        """Answer a question here."""
        began = monotonic()
        ticket.found = solve_box(ticket.asked, stop)
        self.spent += monotonic() - began

    def _fetched(self, ticket: Ticket, stop: Stop) -> Solved:
        """The answer of another process; our own where that gave none."""
        asked, future = ticket.asked, ticket.future
        if future is None or future.exception() is not None:
            self.is_off = True
            return solve_box(asked, stop)
        return _interned(future.result(), asked.paths)

    def _start(self) -> None:
        """Start a process for every other core that the memory allows."""
        # Few searches take long, and joblib takes long to import.
        from joblib import cpu_count  # noqa: PLC0415

        from planner.search.processes import pool_of  # noqa: PLC0415

        left = (self.stop.memory - resident_bytes()) / 2 / WORKER_BYTES
        self.workers = int(min(cpu_count() - 1, left, MOST_WORKERS))
        self.is_off = self.workers < 1
        try:
            self.pool = None if self.is_off else pool_of(self.workers)
        except (RuntimeError, OSError, ImportError):
            # A system without semaphores has no pools.
            self.is_off = True

    def _feed(self) -> None:
        """Give every idle process the next question; none once one was lost."""
        while self.pool is not None and not self.is_off and self.running < self.workers:
            ticket = self._next()
            if ticket is None:
                return
            try:
                ticket.future = self.pool.submit(solve_box, ticket.asked)
            except (RuntimeError, OSError):
                ticket.is_taken, self.is_off = False, True
                return
            self.running += 1
            ticket.future.add_done_callback(self._done)

    def _done(self, future: "Future[Solved]") -> None:
        """Give a process that is idle the next question; a thread of the pool calls."""
        with self.lock:
            self.running -= 1
            self.is_off = self.is_off or future.exception() is not None
            self._feed()


def _interned(found: Solved, known: Sequence[Path]) -> Solved:
    """An answer with the paths of the question itself in place of their copies."""
    own = {(path.counts.tobytes(), path.p2p): path for path in known}

    def these(paths: Iterable[Path]) -> list[Path]:
        return [own.setdefault((p.counts.tobytes(), p.p2p), p) for p in paths]

    weighted, weights = found.multipliers
    return replace(
        found, multipliers=(these(weighted), weights), paths=tuple(these(found.paths))
    )


_AHEAD: ContextVar[Ahead | None] = ContextVar("_AHEAD", default=None)


@contextmanager
def ahead_of(stop: Stop) -> Iterator[Ahead]:
    """Let other cores work ahead of the search that begins meanwhile."""
    ours = Ahead(stop)
    token = _AHEAD.set(ours)
    try:
        yield ours
    finally:
        _AHEAD.reset(token)
        ours.close()


def ahead() -> Ahead:
    """Hand back who takes questions: other cores within a search, else one alone."""
    return _AHEAD.get() or Ahead(Stop(memory=0.0))

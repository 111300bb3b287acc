"""Limits of a command and signals to it: when its searches end, and how it leaves."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import current_thread, main_thread
from types import FrameType
from typing import Annotated

import typer

from planner.errors import TimeLimitError
from planner.questions.inputs.limits import memory_bytes
from planner.search.stop import Stop, process_age, under

MemoryLimit = Annotated[
    str,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Most memory of planner and its workers, as '4 GiB'.",
    ),
]
REPORT = 1.2
"""Processor time after a search: prices, checks, report. [s]"""
MOST_RESERVED = 0.4
"""Largest share of the time limit that is kept for the report. [1]"""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end the searches and ask for the results so far. [-]"""
ALARM = signal.SIGALRM
"""Signal of the clock, which ends a command that is late. [-]"""
LATE, LATE_SHARE = 5.0, 0.25
"""Time after a limit, in seconds and as a share of it, at the larger of which a command
ends without an answer. [s], [1]"""
LONGEST = 1e8
"""Longest time that the clock is set to; more is no limit. [s]"""
LEFT_BY_SIGNAL = 128
"""Exit code of a command ended by a signal, less the number of the signal. [1]"""


class SignalError(BaseException):
    """A signal came before there was anything to print, or came twice."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = LEFT_BY_SIGNAL + number


@dataclass
class Run:
    """One command from its start on."""

    began: float = field(default_factory=time.monotonic)
    """Start of the process, by ``time.monotonic``. [s]"""
    stop: Stop | None = None
    """Rule of the searches, once a search begins."""
    ends: float = float("inf")
    """End of the time limit, by ``time.monotonic``. [s]"""
    received: int = 0
    """Number of the last signal, 0 before one. [1]"""
    ended: BaseException | None = None
    """Signal or limit that ended the command at once, if one did."""

    def limited(self, time_limit: float, memory_limit: str | None = None) -> Stop:
        """Begin the part of the command that a signal ends with the results so far.

        Args:
            time_limit: Longest time, from the start of the process. [s]
            memory_limit: Most memory; None: no limit. [text]

        Raises:
            BadInputError: The memory limit is no size, or too small to work in.
        """
        memory = float("inf") if memory_limit is None else memory_bytes(memory_limit)
        # On a busy machine everything takes longer, in proportion.
        busy = (time.monotonic() - self.began) / max(time.process_time(), 1e-3)
        reserve = min(REPORT * max(busy, 1.0), MOST_RESERVED * time_limit)
        self.ends = self.began + time_limit
        self.stop = Stop(self.ends - reserve, memory)
        late = max(LATE, LATE_SHARE * time_limit) * max(busy, 1.0)
        if _takes_signals():
            left = self.ends + late - time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, min(max(left, LATE), LONGEST))
        return self.stop

    @contextmanager
    def searching(
        self, time_limit: float, memory_limit: str | None = None
    ) -> Iterator[Stop]:
        """Limit all searches of a block, however deep they begin.

        Args:
            time_limit: Longest time, from the start of the process. [s]
            memory_limit: Most memory; None: no limit. [text]

        Raises:
            BadInputError: The memory limit is no size, or too small to work in.
        """
        with under(self.limited(time_limit, memory_limit)) as stop:
            yield stop

    @property
    def spare(self) -> float:
        """Time left for what comes after the search; none once a signal came. [s]."""
        return 0.0 if self.received else max(0.0, self.ends - time.monotonic())

    def handle(self, number: int, _: FrameType | None = None) -> None:
        """End the searches at the first signal; leave at once at the second.

        Raises:
            SignalError: Nothing is known yet, or the signal is the second.
        """
        second, self.received = bool(self.received), number
        if self.stop is None or second:
            self.ended = SignalError(number)
            raise self.ended
        self.stop.interrupt()

    def overrun(self, number: int, _: FrameType | None = None) -> None:
        """End a command that did not end by itself when its time was over.

        Raises:
            SignalError: Always; the command tells of the limit.
        """
        limit = self.ends - self.began
        self.ended = TimeLimitError(
            f"no answer within {limit:g} s; give a longer --time-limit"
        )
        raise SignalError(number)

    def leave(self) -> None:
        """End the command as a signal asked it to, if one did."""
        if self.received:
            raise typer.Exit(LEFT_BY_SIGNAL + self.received)


_RUNS: list[Run] = []
"""Commands under way, the innermost last."""
_BEGAN: list[float] = []
"""Start of the process, until the first command takes it. [s]"""


def begin_with_process() -> None:
    """Count the time limit from the start of the process, imports included."""
    _BEGAN.append(time.monotonic() - process_age())


def this_run() -> Run:
    """The command under way."""
    return _RUNS[-1] if _RUNS else Run()


@contextmanager
def running() -> Iterator[Run]:
    """Take signals for the length of a command."""
    run = Run(_BEGAN.pop()) if _BEGAN else Run()
    before = []
    if _takes_signals():
        handlers = [*((each, run.handle) for each in SIGNALS), (ALARM, run.overrun)]
        before = [(each, signal.signal(each, taken)) for each, taken in handlers]
    _RUNS.append(run)
    try:
        yield run
    finally:
        _RUNS.remove(run)
        if before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)


def _takes_signals() -> bool:
    return current_thread() is main_thread()

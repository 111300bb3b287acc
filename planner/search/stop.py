"""Limits that end a search before the proof: time, memory, and an interrupt."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

OUT_OF_TIME = "time limit"
OUT_OF_MEMORY = "memory limit"
INTERRUPTED = "interrupted"
"""Reasons to stop. [text]"""
LOOK_PERIOD = 0.1
"""Shortest time between two looks at the memory. [s]"""
PROC = Path("/proc")


class StoppedError(Exception):
    """A limit was reached while work was under way; nothing is wrong."""


@dataclass
class Stop:
    """A rule that ends a search; once reached, it stays reached.

    Attributes:
        deadline: Latest end, by ``time.monotonic``. [s]
        memory: Most that this process and its workers may hold. [B]
        more: A further rule, which gives a reason to stop, or an empty text.
        why: Reason to stop, empty before. [text]
    """

    deadline: float = float("inf")
    memory: float = float("inf")
    more: Callable[[], str] = str
    why: str = ""
    _looked: float = field(default=0.0, repr=False)

    @property
    def left(self) -> float:
        """Time before the deadline. [s]."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def reached(self) -> bool:
        """Tell if the search has to end; cheap enough to be asked often."""
        found = self.why or self.more() or self._spent()
        if found and not self.why:
            # A signal may have set the reason meanwhile, which finding none keeps.
            self.why = found
        return bool(self.why)

    def check(self) -> None:
        """Raise an error where the search has to end."""
        if self.reached:
            raise StoppedError(self.why)

    def interrupt(self) -> None:
        """End the search from outside, as a signal does."""
        self.why = INTERRUPTED

    def within(self, seconds: float) -> "Stop":
        """Make a rule for a part of the work, which ends when this rule does.

        Args:
            seconds: Time of the part. [s]
        """
        deadline = min(self.deadline, time.monotonic() + seconds)
        return Stop(deadline, self.memory, more=self._reason)

    def shared(self, parts: int) -> Iterator["Stop"]:
        """Share the time that is left among parts that run one after the other.

        Yields:
            Rules, each made when its part begins. Later parts get unused time.
        """
        for left in range(parts, 0, -1):
            yield self.within(self.left / left)

    def _reason(self) -> str:
        return self.why if self.reached else ""

    def _spent(self) -> str:
        now = time.monotonic()
        if now >= self.deadline:
            return OUT_OF_TIME
        if self.memory < float("inf") and now - self._looked >= LOOK_PERIOD:
            self._looked = now
            return OUT_OF_MEMORY if resident_bytes() > self.memory else ""
        return ""


_ABOVE: ContextVar[Stop | None] = ContextVar("_ABOVE", default=None)
"""Rule of the whole command, which ends each of its searches too."""


@contextmanager
def under(stop: Stop) -> Iterator[Stop]:
    """Let a rule end every search that begins meanwhile, beside its own rule."""
    token = _ABOVE.set(stop)
    try:
        yield stop
    finally:
        _ABOVE.reset(token)


def after(seconds: float) -> Stop:
    """Rule of a search that begins now.

    Args:
        seconds: Longest time. [s]

    Returns:
        The rule, which also ends a search when the rule of :func:`under` does.
    """
    return (_ABOVE.get() or Stop()).within(seconds)


def resident_bytes() -> float:
    """Memory of this process and of all that it started.

    Returns:
        Resident sets, pages that processes share counted in each; 0 where the system
        does not tell. [B]

    References:
        proc(5): statm, task/*/children.
    """
    return sum(map(_resident, _family(os.getpid())))


def _family(root: int) -> Iterator[int]:
    """Numbers of a process and of its descendants. [1]."""
    yield root
    for listing in (PROC / str(root) / "task").glob("*/children"):
        for child in _read(listing).split():
            yield from _family(int(child))


def _resident(process: int) -> float:
    fields = _read(PROC / str(process) / "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0.0


def _read(path: Path) -> str:
    """Text of a file that may be gone by now. [text]."""
    try:
        return path.read_text()
    except OSError:
        return ""


def process_age() -> float:
    """Time since this process began, imports included.

    Returns:
        Wall time; since the first look at the clock where the system does not tell. [s]

    References:
        proc(5): stat, field 22, in clock ticks since boot.
    """
    fields = _read(PROC / "self" / "stat").rpartition(")")[2].split()
    if not fields:
        return time.monotonic() - _IMPORTED
    began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began)


_IMPORTED = time.monotonic()

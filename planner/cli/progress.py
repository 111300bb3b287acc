"""The progress of a search or of rows on stderr, where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from planner.planning.optimize import Progress as SearchProgress

Report = Callable[[SearchProgress], None]
Count = Callable[[int, int], None]


@contextmanager
def search_progress() -> Iterator[Report]:
    """A bar of the candidates that are settled, gone when the search ends."""
    if not sys.stderr.isatty():
        yield lambda _state: None
        return
    with _bar() as bar:
        task = bar.add_task("searching", total=None)

        def tell(state: SearchProgress) -> None:
            done = state.candidates - state.candidates_left
            told, total = describe(state), state.candidates
            bar.update(task, description=told, total=total, completed=done)

        yield tell


@contextmanager
def row_progress() -> Iterator[tuple[Count, Count]]:
    """A bar of the rows that are priced, then of the jobs that are planned."""
    with _counted("pricing rows", "rows") as tell:
        yield tell, partial(tell, things="jobs planned")


@contextmanager
def candidate_progress() -> Iterator[Count]:
    """A bar of the candidates of a comparison that are planned."""
    with _counted("planning candidates", "candidates") as tell:
        yield tell


class _Tell(Protocol):
    """Called with things done and things in all."""

    def __call__(self, done: int, total: int, things: str = ...) -> None: ...


@contextmanager
def _counted(doing: str, things: str) -> Iterator[_Tell]:
    if not sys.stderr.isatty():
        yield _silent
        return
    named = things
    with _bar() as bar:
        task = bar.add_task(doing, total=None)

        def tell(done: int, total: int, things: str = named) -> None:
            told = f"{done:,} of {total:,} {things}"
            bar.update(task, description=told, total=total, completed=done)

        yield tell


def _silent(done: int, total: int, things: str = "") -> None:
    """Without a terminal nothing is told."""


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True, markup=False, highlight=False)
    return Progress(*columns, console=console, transient=True)


def describe(state: SearchProgress) -> str:
    """The state of a search in a phrase.

    Args:
        state: Candidates left, best step and bound so far. [-]
    """
    parts = [f"{state.candidates_left:,} left"]
    if state.incumbent_s is not None:
        parts.append(f"best {state.incumbent_s:.3f} s")
    if state.gap is not None:
        parts.append(f"gap {state.gap:.2%}")
    return ", ".join(parts)

"""The progress of a search or of rows on stderr, where that is a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from planner.planning.optimize import Progress as SearchProgress
from planner.report.charts.search import SearchState

Report = Callable[[SearchProgress], None]


@contextmanager
def search_progress(trail: list[SearchState]) -> Iterator[Report]:
    """A bar of the candidates that are settled, gone when the search ends.

    Args:
        trail: List that takes every state that the search reports. [-]

    Yields:
        Function to call with each state; it shows nothing without a terminal.
    """
    started = time.monotonic()

    def note(state: SearchProgress) -> None:
        now = time.monotonic() - started
        trail.append(SearchState(now, state.incumbent_s, state.bound_s))

    if not sys.stderr.isatty():
        yield note
        return
    with _bar() as bar:
        task = bar.add_task("searching", total=None)

        def tell(state: SearchProgress) -> None:
            note(state)
            done = state.candidates - state.candidates_left
            told, total = describe(state), state.candidates
            bar.update(task, description=told, total=total, completed=done)

        yield tell


@contextmanager
def row_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar of the rows that are priced, gone when all are.

    Yields:
        Function to call with rows done and rows in all; silent without a terminal.
    """
    with _counted("pricing rows", "rows") as tell:
        yield tell


@contextmanager
def candidate_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar of the candidates of a comparison that are planned.

    Yields:
        Function to call with candidates done and all; silent without a terminal.
    """
    with _counted("planning candidates", "candidates") as tell:
        yield tell


@contextmanager
def _counted(doing: str, things: str) -> Iterator[Callable[[int, int], None]]:
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with _bar() as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(
            task,
            description=f"{done:,} of {total:,} {things}",
            total=total,
            completed=done,
        )


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True, markup=False, highlight=False)
    return Progress(*columns, console=console, transient=True)


def describe(state: SearchProgress) -> str:
    """The state of a search in a phrase.

    Args:
        state: Candidates left, best step and bound so far. [-]

    Returns:
        For example `12,345 left, best 9.123 s, gap 1.20 %`. [text]
    """
    parts = [f"{state.candidates_left:,} left"]
    if state.incumbent_s is not None:
        parts.append(f"best {state.incumbent_s:.3f} s")
    if state.gap is not None:
        parts.append(f"gap {state.gap:.2%}")
    return ", ".join(parts)

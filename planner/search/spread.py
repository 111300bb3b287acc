"""Work of a search, for other machines, for all cores of this one, or for one core."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from planner.search.stop import Stop


class Spread(Protocol):
    """Does calls elsewhere, and hands the results back in the order of the calls."""

    def __call__(
        self, work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], stop: Stop
    ) -> Iterator[Any]:
        """Do a call for each tuple of arguments."""


_SPREAD: ContextVar[Spread | None] = ContextVar("_SPREAD", default=None)


@contextmanager
def spread_by(spread: Spread) -> Iterator[None]:
    """Let every search that begins meanwhile hand out the parts of large spaces."""
    token = _SPREAD.set(spread)
    try:
        yield
    finally:
        _SPREAD.reset(token)


def spread() -> Spread | None:
    """Hand back the rule by which a search spreads its calls.

    Returns:
        None where the cores of this machine do the calls.
    """
    return _SPREAD.get()


_ALONE: ContextVar[bool] = ContextVar("_ALONE", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Keep every search that begins meanwhile to one core: others have work, too."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def is_alone() -> bool:
    """Tell if a search is to keep to one core.

    Returns:
        True where other searches have the other cores.
    """
    return _ALONE.get()

"""Progress of a search, told to a function of the user, who may end the search."""

from collections.abc import Callable

from planner.planning.optimize import Progress
from planner.search.stop import Stop

OnProgress = Callable[[Progress], object]
"""Called about ten times a second with the state of a search."""
Counted = Callable[[int, int], object]
"""Called with things done and things in all."""


class StopSearch(Exception):  # noqa: N818  # as StopIteration, it is no error
    """Raise it in `on_progress` to end a search with the best plan so far."""


def telling(on_progress: OnProgress | None, stop: Stop) -> OnProgress:
    """Function for a search to call, which ends the search as the user asks.

    Args:
        on_progress: Function of the user, or None. [-]
        stop: Rule of the search. [-]

    Returns:
        The function; it raises whatever else the user's function raises. [-]
    """

    def tell(state: Progress) -> None:
        if on_progress is None or stop.why:
            return
        try:
            on_progress(state)
        except StopSearch:
            stop.interrupt()

    return tell


def uncounted(_done: int, _total: int) -> None:
    """Tell nobody.

    Args:
        _done: Things done. [1]
        _total: Things in all. [1]
    """

"""Parts of one search on the workers of a Dask cluster."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import TimeoutError as StillOpenError
from contextlib import contextmanager
from typing import Any

from planner.planning.comparison.sweep import (
    CONNECT_S,
    UnreachableError,
    connected,
    lost,
)
from planner.search.spread import spread_by
from planner.search.stop import Stop

AHEAD = 4
"""Calls for each thread of the cluster that are under way at once. [1]"""
LOOK_S = 0.2
"""Time between two looks at the limits while a result is awaited. [s]"""


@contextmanager
def on_cluster(
    address: str | None,
    *,
    fall_back: bool = False,
    note: Callable[[str], object] = str,
) -> Iterator[None]:
    """Let the searches that begin meanwhile price parts of large spaces on a cluster.

    Args:
        address: Address of the scheduler; none: on this machine's cores. [text]
        fall_back: True to use this machine's cores where it does not answer.
        note: Told of a fall back. [-]

    Raises:
        UnreachableError: No scheduler there, no worker in time, or it went away.
        BadInputError: Dask is not installed.
    """
    try:
        client = None if address is None else connected(address)
    except UnreachableError as error:
        if not fall_back:
            raise
        note(f"{error.message}; plans on this machine")
        client = None
    if client is None or address is None:
        yield
        return

    def spread(
        work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], stop: Stop
    ) -> Iterator[Any]:
        return _in_order(client, work, calls, stop, address)

    try:
        with spread_by(spread):
            yield
    finally:
        client.close(timeout=CONNECT_S)


def _in_order(
    client: Any,
    work: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    stop: Stop,
    address: str,
) -> Iterator[Any]:
    """Results in the order of the calls, a few of which are under way at once.

    A worker that is lost gives its calls back, and the scheduler hands them to others.
    Every result is of one whole call, and calls share nothing. So neither workers nor
    their loss change a result.
    """
    from distributed.client import FutureCancelledError  # noqa: PLC0415  # an extra

    open_: deque[Any] = deque()
    ahead = AHEAD * max(sum(client.nthreads().values()), 1)
    try:
        for call in calls:
            open_.append(client.submit(work, *call, pure=False))
            if len(open_) >= ahead:
                yield _result(open_.popleft(), stop)
        while open_:
            yield _result(open_.popleft(), stop)
    except (OSError, FutureCancelledError) as error:
        raise lost(address) from error
    finally:
        client.cancel(list(open_))


def _result(future: Any, stop: Stop) -> Any:
    """Result of a call; raises where a limit is reached before it is there."""
    while True:
        try:
            return future.result(timeout=LOOK_S)
        except StillOpenError:
            if future.status == "error":
                raise
            stop.check()

"""Run one function over every candidate: on all cores of this machine, or on Dask.

Both hand back results as they are done, so that each can be kept on disk at once.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from planner.errors import BadInputError, TimeLimitError, install
from planner.search.spread import alone
from planner.search.stop import Stop, after, under

Task = TypeVar("Task")
Done = TypeVar("Done")

CONNECT_S = 10.0
"""Longest wait for a scheduler, and for a worker of it. [s]"""
LOOK_S = 5.0
"""Time without a result after which the workers are looked at. [s]"""


class UnreachableError(BadInputError):
    """A scheduler that does not answer, or has no worker."""


def on_cores(
    work: Callable[[Task], Done], tasks: Sequence[Task], *, cores: int | None = None
) -> Iterator[tuple[int, Done]]:
    """Do every task in processes of this machine.

    Args:
        work: A function of a module, with an argument and a result that pickle.
        tasks: Arguments of the work. [-], shape (tasks,)
        cores: Processes at most; absent: one for each core. [1]
    """
    # A plan on no cluster needs neither.
    from joblib import cpu_count, delayed  # noqa: PLC0415

    from planner.search.processes import at_once  # noqa: PLC0415

    jobs = min(cores or cpu_count(), len(tasks))
    if jobs <= 1:
        yield from ((at, work(task)) for at, task in enumerate(tasks))
        return
    memory = after(0.0).memory / jobs
    numbered = (
        delayed(_numbered)(work, at, task, memory) for at, task in enumerate(tasks)
    )
    yield from at_once(numbered, jobs, ordered=False)


def _numbered(
    work: Callable[[Task], Done], at: int, task: Task, memory: float
) -> tuple[int, Done]:
    """One task in a process of its own, within its part of the memory."""
    with under(Stop(memory=memory)):
        return at, work(task)


def _alone(work: Callable[[Task], Done], task: Task) -> Done:
    """One task on a machine whose other cores have tasks, too."""
    with alone():
        return work(task)


def on_dask(
    work: Callable[[Task], Done], tasks: Sequence[Task], address: str
) -> Iterator[tuple[int, Done]]:
    """Do every task on the workers of a Dask cluster.

    A worker that is lost gives its tasks back: the scheduler hands them to another.
    Every result is of one whole call, so losing a worker costs time alone.

    Args:
        work: A function of a module that the workers have too.
        tasks: Arguments of the work. [-], shape (tasks,)
        address: Address of the scheduler, as `tcp://host:8786`. [text]

    Raises:
        UnreachableError: No scheduler there, no worker in time, or they went away.
        BadInputError: Dask is not installed.
    """
    client = connected(address)
    try:
        yield from _gathered(client, work, tasks, address)
    finally:
        client.close(timeout=CONNECT_S)


@dataclass
class OnCluster:
    """Work on the workers of a Dask cluster, and what is left of it when they go.

    Attributes:
        address: Address of the scheduler, as `tcp://host:8786`. [text]
        lost: Reason why work was left; empty while there are workers. [text]
        finished: Tasks that the workers handed back. [1]
    """

    address: str
    lost: str = ""
    finished: int = 0

    def __call__(
        self, work: Callable[[Any], Any], tasks: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Do every task; once workers are lost, the others end as at a time limit.

        Args:
            work: A function of a module that the workers have too. [-]
            tasks: Arguments of the work, each with `ended`. [-], shape (tasks,)

        Raises:
            UnreachableError: The workers went before they finished a task.
        """
        left = dict(enumerate(tasks))
        try:
            for at, result in () if self.lost else on_dask(work, tasks, self.address):
                self.finished += 1
                del left[at]
                yield at, result
        except UnreachableError as error:
            if not self.finished:
                raise
            self.lost = error.message
        yield from ((at, work(task.ended())) for at, task in left.items())

    def refuse_lost(self) -> None:
        """Refuse an answer whose work was not all done."""
        if self.lost:
            raise TimeLimitError(
                f"{self.lost}; what it had not finished has no plan above: call again, "
                "with --resume DIR to keep what is finished, or with --fall-back"
            )


def connected(address: str) -> Any:
    """Connect to a scheduler that has a worker."""
    try:
        from distributed import Client  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise BadInputError(
            "a Dask cluster needs dask and distributed",
            field="--scheduler",
            value=address,
            allowed=install("distributed"),
        ) from error
    # Dask's own log of a lost connection would come beside our one message.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError, TimeoutError) as error:
        raise _unreachable("cannot be reached", address) from error
    try:
        _require_worker(client, address)
    except UnreachableError:
        client.close(timeout=CONNECT_S)
        raise
    return client


def _require_worker(client: Any, address: str) -> None:
    """Wait for a worker, and not for ever."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except (OSError, TimeoutError) as error:
        raise _unreachable("has no workers", address) from error


def lost(address: str) -> UnreachableError:
    """The error of a scheduler that went away."""
    return _unreachable("was lost", address)


def _unreachable(what: str, address: str) -> UnreachableError:
    return UnreachableError(
        f"the scheduler {what}",
        field="--scheduler",
        value=address,
        allowed="the tcp:// address of a Dask scheduler with workers, or --fall-back "
        "to plan on this machine where it does not answer",
    )


def _gathered(
    client: Any, work: Callable[[Task], Done], tasks: Sequence[Task], address: str
) -> Iterator[tuple[int, Done]]:
    """Results as they are done; a lost scheduler ends it with one message."""
    from distributed import KilledWorker  # noqa: PLC0415
    from distributed.client import FutureCancelledError  # noqa: PLC0415

    futures = [client.submit(_alone, work, task, pure=False) for task in tasks]
    places = {future.key: at for at, future in enumerate(futures)}
    try:
        for future in _done(client, futures, address):
            yield places[future.key], future.result()
    except KilledWorker as error:
        raise _unreachable("lost every worker that began a task", address) from error
    except (OSError, FutureCancelledError) as error:
        raise lost(address) from error


def _done(client: Any, futures: Sequence[Any], address: str) -> Iterator[Any]:
    """Futures as they are done, while there is a worker to do them."""
    from distributed import as_completed  # noqa: PLC0415

    open_ = dict.fromkeys(futures)
    while open_:
        try:
            for future in as_completed(open_, loop=client.loop, timeout=LOOK_S):
                del open_[future]
                yield future
        except TimeoutError:
            _require_worker(client, address)

"""Work in several processes of this machine, which end with this one."""

import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from threading import current_thread, main_thread
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky import ProcessPoolExecutor

from planner.search.spread import alone

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A call in the form of ``joblib.delayed``. [-]"""

IDLE_S = 60.0
"""Time without a call after which a process ends, as it does without a parent. [s]"""
GIVEN_UP = r"(?s).*tasks (which were still being processed|have been successfully)"
"""Pattern of joblib's warnings where results are not taken. [text]"""


def at_once(calls: Iterable[Call], jobs: int, *, ordered: bool = True) -> Iterator[Any]:
    """Do calls in several processes, a few ahead of those whose results are taken.

    Args:
        calls: Made by ``joblib.delayed``; functions of a module.
        jobs: Processes. [1]
        ordered: True for results in the order of the calls; else as they are done.

    Yields:
        Results. Where no more are taken, the calls under way are given up.
    """
    how = "generator" if ordered else "generator_unordered"
    parallel = Parallel(n_jobs=jobs, return_as=how, pre_dispatch="2*n_jobs")
    results = parallel(delayed(_deaf)(call) for call in calls)
    # Calls are given up on purpose where no more results are taken.
    warnings.filterwarnings("ignore", GIVEN_UP, UserWarning)
    try:
        yield from results
    finally:
        results.close()


def pool_of(processes: int) -> Any:
    """Processes that take one call after the other, in whatever order they come.

    joblib's own kind, which does not import the main module of the parent again.

    Returns:
        An executor of :mod:`concurrent.futures`, to be shut down by who asked. [-]
    """
    return ProcessPoolExecutor(processes, timeout=IDLE_S, initializer=_deafen)


def _deaf(call: Call) -> Any:
    """Do a call in a process that leaves Ctrl-C to the parent process.

    Within such a process further calls are done by threads.
    """
    function, given, named = call
    _deafen()
    with alone():
        return function(*given, **named)


def _deafen() -> None:
    """Leave Ctrl-C to the parent process."""
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

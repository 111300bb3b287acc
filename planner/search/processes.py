"""Work in several processes of this machine, which end with this one."""

import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import current_process
from queue import SimpleQueue
from threading import current_thread, main_thread
from typing import Any

from joblib import Parallel, cpu_count, delayed

from planner.search.stop import Stop, resident_bytes

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A call in the form of ``joblib.delayed``. [-]"""

GIVEN_UP = r"(?s).*tasks (which were still being processed|have been successfully)"
"""Pattern of joblib's warnings where results are not taken. [text]"""

EACH_BYTES = 0.4e9
"""Memory of one process of a pool. [B]"""
MOST = 4
"""Most processes of one search: more would solve too much that none asks for. [1]"""
ANSWER = "from planner.search.processes import answer_calls; answer_calls()"


def most_processes(stop: Stop) -> int:
    """Processes that a search may have, as far as cores and memory allow.

    Args:
        stop: Rule of the search, with its limit on the memory. [-]

    Returns:
        Processes, this one among them; 1 in a process that another one started. [1]
    """
    if current_process().name != "MainProcess":
        return 1
    spare = max(0.0, stop.memory / 2 - resident_bytes())
    return int(min(cpu_count(), MOST, 1 + spare / EACH_BYTES))


class Pool:
    """Processes that do calls one at a time, in the order in which they come.

    A thread of this process waits for each. Other than in joblib's pools no call is
    with a process before its turn, and all end at once, whatever they do.
    """

    def __init__(self, processes: int) -> None:
        """Start the processes.

        What is blocked now is blocked in them, too: Ctrl-C is for this process.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.started = [_started() for _ in range(processes)]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for process in self.started:
            self.free.put(process)
        self.threads = ThreadPoolExecutor(processes)

    def submit(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        """Hand a call out.

        Args:
            function: A function of a module.
            given: Arguments that pickle. [-]

        Returns:
            The result to come; an error where the process ends before.
        """
        return self.threads.submit(self._call, function, given)

    def _call(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        process = self.free.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump((function, given), process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)  # noqa: S301  # our own process
        finally:
            self.free.put(process)

    def close(self) -> None:
        """End the processes at once."""
        for process in self.started:
            process.kill()
            process.wait()
        self.threads.shutdown(cancel_futures=True)
        for process in self.started:
            # what a call left unsent has nowhere to go
            with suppress(BrokenPipeError):
                process.communicate()


def _started() -> subprocess.Popen[bytes]:
    """A process that answers calls until this one ends."""
    return subprocess.Popen(  # noqa: S603  # our own function
        [sys.executable, "-P", "-c", ANSWER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def answer_calls() -> None:
    """Do calls from standard input until it ends, results to standard output."""
    given, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            function, arguments = pickle.load(given)  # noqa: S301  # our parent's
        except EOFError:
            return
        pickle.dump(function(*arguments), results)
        results.flush()


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


def _deaf(call: Call) -> Any:
    """Do a call in a process that leaves Ctrl-C to the parent process.

    Within such a process further calls are done by threads.
    """
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    function, given, named = call
    return function(*given, **named)

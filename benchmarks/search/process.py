"""A case in a process of its own, which never outlives its limit."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

from benchmarks.machine import RSS_UNIT, machine
from benchmarks.search.cases import ROOT, Case

Row = dict[str, Any]
"""One measurement: the output of `benchmarks.search.one`, and its case."""
GRACE = 45.0
"""Wall time beyond the search's limit, after which a process is stopped. [s]

This covers the work that no time limit stops: imports, pricing and the report.
"""
PERIOD = 0.1
"""Time between two looks at the memory. [s]"""
LAST_WORDS = 5.0
"""Time in which a stopped process may still print what it knows. [s]"""


@dataclass(frozen=True)
class Ended:
    """End of a process: exit code, output, peak memory and time."""

    code: int
    """Exit code of the process; the negative of a signal that ended it. [1]"""
    output: str
    errors: str
    peak_bytes: int
    """Most that the process and all that it started held at once, looked at every
    ``PERIOD``; at least the process's own largest resident set. [B]"""
    seconds: float


def run(command: list[str], limit: float) -> Ended:
    """Run a command to its end or its limit; nothing of it is left behind.

    Args:
        command: Program and arguments. [text]
        limit: Wall time after which the command and all that it started are told to
            stop, and killed soon after. [s]

    Returns:
        End of the process.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as told:
        process = subprocess.Popen(  # noqa: S603  # our own module
            command, cwd=ROOT, stdout=out, stderr=told, start_new_session=True
        )
        stop = Timer(limit, _signal_group, (process.pid, signal.SIGTERM))
        kill = Timer(limit + LAST_WORDS, _signal_group, (process.pid, signal.SIGKILL))
        stop.start()
        kill.start()
        watch = _Watch(process.pid)
        watch.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            stop.cancel()
            kill.cancel()
            peak = watch.ended()
            _signal_group(process.pid, signal.SIGKILL)
        process.returncode = os.waitstatus_to_exitcode(status)
        output, errors = _text(out), _text(told)
    seconds = time.monotonic() - began
    peak = max(peak, usage.ru_maxrss * RSS_UNIT)
    return Ended(process.returncode, output, errors, peak, seconds)


def tree_bytes(root: int) -> int:
    """Memory of a process and of all its descendants.

    Args:
        root: Process number. [1]

    Returns:
        Resident sets; shared pages count in each process. [B]
    """
    parents: dict[int, int] = {}
    held: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(stat.parent.name)
        parents[number], held[number] = int(fields[1]), int(fields[21]) * 4096
    total, family = 0, [root]
    while family:
        own = family.pop()
        total += held.get(own, 0)
        family += [child for child, parent in parents.items() if parent == own]
    return total


class _Watch(Thread):
    """Looks at the memory of a process and its descendants until told to end."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.end = process, 0, Event()

    def run(self) -> None:
        """Look now and then."""
        while not self.end.wait(PERIOD):
            self.peak = max(self.peak, tree_bytes(self.process))

    def ended(self) -> int:
        """End; returns the most that was seen. [B]."""
        self.end.set()
        self.join()
        return self.peak


def measured(case: Case, time_limit: float) -> Row:
    """Search one job in a process of its own.

    Args:
        case: Job and space.
        time_limit: Wall time of the search. [s]

    Returns:
        Output of the search, peak memory, machine and date. A stopped process gives
        its status, times and series. A killed or failed process gives time and memory
        alone, and a failed process its error.
    """
    sets = [word for text in case.assignments for word in ("--set", text)]
    command = [sys.executable, "-m", "benchmarks.search.one", str(case.path), *sets]
    command += ["--time-limit", str(time_limit), "--started", str(time.time())]
    ended = run(command, time_limit + GRACE)
    return {
        "job": case.job,
        "space": case.space,
        **_found(ended),
        "peak_mib": ended.peak_bytes / 2**20,
        "time_limit_s": time_limit,
        "machine": machine(),
    }


def _found(ended: Ended) -> Row:
    """The measurement that a process printed, or the way that the process failed."""
    if ended.code == 0:
        row: Row = json.loads(ended.output.splitlines()[-1])
        return row
    if ended.code in {-signal.SIGTERM, -signal.SIGKILL}:
        return {"status": "killed", "process_s": ended.seconds}
    why = ended.errors.strip().splitlines()[-1:] or [f"exit code {ended.code}"]
    return {"status": "failed", "process_s": ended.seconds, "error": why[0]}


def _signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process and all that it started."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode("utf-8", "replace"))

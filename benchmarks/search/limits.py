"""Limits of `planner plan`: ``python -m benchmarks.search.limits``.

Every job of configs/jobs is planned in the default and in the full space. Each runs in
a process of its own, as a user starts it. Wall time counts from the start of the
process. Memory counts over the process with all that it started. The exit code is 1 if
a row ends later than the time limit by more than ``LATE``. It is also 1 if a row holds
more than ``MORE`` times the memory limit, or leaves with another code than 0, 3 or 4.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.search.cases import FOLDERS
from benchmarks.search.process import run

SPACES = ("default", "full")
LATE = 5.0
"""Time by which a process may end after its limit. [s]"""
MORE = 1.2
"""Memory that a process may hold, over its limit. [1]"""
CODES = (0, 3, 4)
"""Plans, a proof that nothing fits, or no plan in time. [1]"""
PATIENCE = 60.0
"""Time after the limit at which a process is killed. [s]"""
GIB = 2**30


@dataclass(frozen=True)
class Kept:
    """Measurement of one process against its limits."""

    job: str
    space: str
    seconds: float
    cpu: float
    """Processor time of the process and all children that it waited for. [s]"""
    peak_bytes: int
    code: int
    last: str
    """Last line of the process's messages. [text]"""

    def within(self, time_limit: float, memory_limit: float) -> bool:
        """Tell if a process kept both limits.

        Args:
            time_limit: Wall time. [s]
            memory_limit: Memory of the process and its descendants. [B]

        Returns:
            True where time, memory and exit code are as promised.
        """
        in_time = self.seconds <= time_limit + LATE
        return in_time and self.peak_bytes <= MORE * memory_limit and self.code in CODES


def planned(job: str, space: str, time_limit: float, more: Sequence[str]) -> Kept:
    """Plan one job in a process of its own, and watch its time and memory.

    Args:
        job: Name of a file in configs/jobs. [text]
        space: default or full. [text]
        time_limit: Time limit of `planner plan`. [s]
        more: More words of the command line. [text]

    Returns:
        The measurement.
    """
    command = [sys.executable, "-m", "planner", "plan", job]
    command += ["--set", f"search.space={space}", "--time-limit", f"{time_limit:g}"]
    before = sum(os.times()[2:4])
    ended = run([*command, *more], time_limit + PATIENCE)
    cpu = sum(os.times()[2:4]) - before
    last = (ended.output + ended.errors).strip().splitlines()[-1:]
    return Kept(
        job, space, ended.seconds, cpu, ended.peak_bytes, ended.code, "".join(last)
    )


def jobs() -> Iterator[str]:
    """Names of the shipped jobs. [text]."""
    yield from sorted(path.stem for path in FOLDERS[0].glob("*.yaml"))


def main() -> int:
    """Measure the jobs that the command line asks for.

    Returns:
        1 where a limit was not kept. [1]
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", help="names of jobs; none: all")
    parser.add_argument("--space", choices=SPACES, action="append")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds")
    parser.add_argument("--memory-limit", type=float, default=4.0, help="GiB")
    asked = parser.parse_args()
    more = ["--memory-limit", f"{asked.memory_limit:g} GiB"]
    broken = 0
    for job in asked.jobs or jobs():
        for space in asked.space or SPACES:
            row = planned(job, space, asked.time_limit, more)
            kept = row.within(asked.time_limit, asked.memory_limit * GIB)
            broken += not kept
            print(
                f"{job:42s} {space:8s} {row.seconds:6.1f} s {row.cpu:5.1f} s CPU "
                f"{row.peak_bytes / GIB:5.2f} GiB  exit {row.code}"
                f"{'' if kept else '  NOT KEPT: ' + row.last}",
                flush=True,
            )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

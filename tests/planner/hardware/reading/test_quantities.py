"""Mypy takes no quantity for another; a run takes all for floats and arrays."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from planner.hardware.reading.quantities import (
    Bytes,
    Column,
    IntColumn,
    Nanoseconds,
    Seconds,
)

HEAD = """
import numpy as np
from planner.cost.meshes import Groups
from planner.cost.network.collectives import Fabric, all_gather_time
from planner.cost.table.units import nanoseconds
from planner.hardware.reading.quantities import *

def checked(
    time: Seconds, size: Bytes, rate: BytesPerSecond, work: Flops,
    peak: FlopPerSecond, ns: Nanoseconds, blocks: Blocks,
    times: Column[Seconds], sizes: Column[Bytes], links: Fabric, group: Groups,
) -> None:
    def at(end: Nanoseconds) -> None: ...
    def after(wait: Seconds) -> None: ...
"""
RIGHT = """
    after(time + 2 * size / rate - work / peak)
    after(max(time, time / 3))
    share: float = time / time + size / size
    after(-time)
    at(ns + ns * 2)
    nanoseconds(all_gather_time(links, sizes, group))
    nanoseconds(np.where(times > 0, times, 0.0))
    nanoseconds(sizes / rate)
    plain: float = time
"""
WRONG = """
    time + size
    size - time
    after(time + 1.5)
    at(time * 1e9)
    at(blocks)
    after(size / peak)
    after(rate)
    after(time * time)
    after(size * rate)
    nanoseconds(sizes)
    nanoseconds(2 * sizes)
    nanoseconds(nanoseconds(times))
    all_gather_time(links, times, group)
    all_gather_time(links, all_gather_time(links, sizes, group), group)
"""


def found_wrong(file: Path, lines: str) -> set[str]:
    """Lines in which mypy finds an error."""
    file.write_text(HEAD + lines)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[4],
    )
    rows = [row.split(":") for row in done.stdout.splitlines()]
    at = {int(row[1]) for row in rows if row[0] == str(file)}
    written = file.read_text().splitlines()
    return {written[line - 1] for line in at}


@pytest.mark.slow
def test_mypy_refuses_a_quantity_for_another_and_no_other_line(tmp_path: Path) -> None:
    wrong = found_wrong(tmp_path / "used.py", RIGHT + WRONG)
    assert wrong == set(WRONG.strip("\n").splitlines())


def test_a_run_sees_floats_and_arrays() -> None:
    assert type(Seconds(2)) is type(Bytes(2)) is float
    assert Column[Seconds] == npt.NDArray[np.float64]
    assert IntColumn[Nanoseconds] == npt.NDArray[np.int64]

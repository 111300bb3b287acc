"""A case runs in its own process, which ends with all that it started."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.search import one, process
from benchmarks.search.cases import ROOT, Case, case
from benchmarks.search.process import measured, run
from benchmarks.search.series import Watch
from benchmarks.search.shown.page import line
from benchmarks.search.shown.tables import CASE_HEAD, case_cells
from planner.search.outcome import Progress

LIMIT = 1.0
"""Time that a process which never ends is given. [s]"""
NEVER_ENDS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


MEASURES = """
import sys
from benchmarks.search.process import run
ended = run([sys.executable, "-c", "x = b'1' * 200_000_000; print(len(x))"], 60.0)
print(ended.code, ended.output.strip(), ended.peak_bytes)
"""


def test_a_process_gives_its_output_and_its_memory() -> None:
    """In a fresh process: a child counts the memory that its parent had at the fork."""
    words = [sys.executable, "-c", MEASURES]
    told = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    code, output, peak = told.stdout.split()
    assert (code, output) == ("0", "200000000")
    assert 200e6 < float(peak) < 400e6


def test_a_process_past_its_limit_is_killed_with_its_children() -> None:
    ended = run([sys.executable, "-c", NEVER_ENDS], LIMIT)
    assert ended.code == -15
    assert LIMIT <= ended.seconds < 60
    assert not alive(int(ended.output))


def alive(pid: int) -> bool:
    """Whether a process runs, a few moments after it was told to end."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        time.sleep(0.1)
    return True


@pytest.mark.slow
def test_a_failure_says_why(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("model: no-such-model\n")
    row = measured(Case("bad", "default", bad, ()), 5.0)
    assert row["status"] == "failed"
    assert row["error"]
    assert row["error"] in line(row)


def test_a_process_that_does_not_stop_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "LAST_WORDS", 0.5)
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    assert run([sys.executable, "-c", deaf], LIMIT).code == -9


def test_a_case_that_is_stopped_early_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.0)
    row = measured(case("llama-3.1-70b-32-h100", "default"), 0.2)
    assert row["status"] in {"stopped", "killed"}
    assert row["process_s"] >= 0.2
    assert case_cells(row)[2:4] == (row["status"], "none")
    assert len(case_cells(row)) == len(CASE_HEAD)


def test_a_search_that_is_stopped_tells_what_it_knew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(*_: object, progress: Watch, **__: object) -> None:
        progress(Progress(1, 1, 10.0, 9.0))
        raise one.Stopped

    monkeypatch.setattr(one, "optimize", stopped)
    row = one.measure(case("llama-3-8b-8-a100", "full").path, (), 60.0, 0.0)
    assert row["status"] == "stopped"
    assert [point[1:] for point in row["series"]] == [[10.0, 9.0]]
    assert row["phases_s"]["resolve"] > 0


@pytest.mark.slow
def test_a_case_is_measured_whole() -> None:
    """A small job from its file to its row, which the page can show."""
    row = measured(case("llama-3-8b-8-a100", "default"), 60.0)
    assert row["status"] == "optimal"
    assert row["gap"] == 0.0
    assert 0 < row["first_plan_s"] <= row["proof_s"] <= row["process_s"]
    assert row["candidates"] >= row["solved"]
    assert {"import", "enumerate", "price", "report"} <= set(row["phases_s"])
    assert row["series"][-1][1] == pytest.approx(row["step_s"], rel=1e-5)
    assert case_cells(row)[2:4] == ("optimal", f"{row['candidates']:,}")


def test_the_processes_of_a_case_have_a_group_of_their_own() -> None:
    """Else killing them would end whoever asked."""
    ended = run([sys.executable, "-c", "import os; print(os.getpgid(0))"], 60.0)
    assert int(ended.output) != os.getpgid(0)

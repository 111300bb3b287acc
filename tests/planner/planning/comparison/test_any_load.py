"""One answer to a question, however busy the machine and however many its cores."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from purchases import JOB, up_to, written
from rich.console import Console

from planner.document.terminal import report
from planner.hardware.reading.files import SHIPPED
from planner.planning.comparison.answer import CandidateAnswer, Comparison, Effort
from planner.planning.comparison.flow import compare
from planner.planning.comparison.read import Asking, given_by, sweep_of
from planner.planning.comparison.store import Store
from planner.report.comparison import comparison_document
from planner.report.pages import page_html

ROOT = Path(__file__).resolve().parents[4]
SPACE = {**JOB, "search": {"cp": 1, "recompute": ["none", "full"]}}
MOST = 2


def in_turn(work: Any, tasks: Any) -> Iterator[tuple[int, Any]]:
    yield from ((at, work(task)) for at, task in enumerate(tasks))


def asked(file: Path, **limits: Any) -> Comparison:
    effort = Effort(work=limits.pop("work", 20_000.0), tolerance=0.01)
    return compare(
        sweep_of([given_by(file)], Asking(effort=effort, **limits, catalog=SHIPPED)),
        in_turn,
        Store(None),
    )


def timeless(answer: Comparison) -> Comparison:
    return answer.model_copy(update={"seconds": 0.0})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("load")
    return written(folder, job=SPACE, candidates=up_to(MOST), budget="10 MUSD")


@pytest.fixture(scope="module")
def proven(file: Path) -> Comparison:
    return asked(file)


@pytest.mark.parametrize(
    "limits", [{}, pytest.param({"deadline_s": 9 * 3600.0}, marks=pytest.mark.slow)]
)
def test_a_slow_machine_gives_the_same_answer(
    file: Path,
    proven: Comparison,
    limits: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between any two looks at the clock a minute goes by."""
    quick = asked(file, **limits) if limits else proven
    minutes = count(0.0, 60.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(minutes))
    slow = asked(file, **limits)
    monkeypatch.undo()
    assert timeless(slow) == timeless(quick)
    assert all(one.settled for one in slow.candidates)


@pytest.mark.slow
def test_little_work_is_told_and_wins_nothing(file: Path, proven: Comparison) -> None:
    """In the answer, in the text and on the page; and the same each time."""
    little = asked(file, work=1.0)
    assert timeless(little) == timeless(asked(file, work=1.0))
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(report(comparison_document(little)))
    text = console.export_text()
    page = page_html(comparison_document(little))
    for one in little.candidates:
        if not one.settled:
            assert one.unsettled
            assert not one.pareto
            assert little.best != one.name
            assert "not settled" in " ".join(text.split())
            assert "not settled" in page
    if little.best:
        assert little.best == proven.best


def _of(answer: Comparison, name: str) -> CandidateAnswer:
    return next(one for one in answer.candidates if one.name == name)


def test_the_best_is_proven_to_be(proven: Comparison) -> None:
    """No other candidate may be faster, as far as was proven."""
    best = _of(proven, proven.best)
    assert best.time_to_train_s is not None
    for one in proven.candidates:
        if one.name != best.name and one.settled:
            assert one.least_time_s is not None
            assert one.least_time_s >= best.time_to_train_s


@pytest.mark.slow
def test_cores_and_load_change_nothing(file: Path) -> None:
    """One core, two, and beside busy loops: the same JSON but for its seconds."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    loops = [sys.executable, "-c", "while True: pass"]
    runs = [_printed(file, cores[:1]), _printed(file, cores)]
    busy = [subprocess.Popen(loops) for _ in range(3)]
    try:
        runs.append(_printed(file, cores))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert runs[0] == runs[1] == runs[2]


def _printed(file: Path, cores: list[int]) -> dict[str, Any]:
    command = [sys.executable, "-m", "planner", "compare", str(file), "--json", "-"]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    finally:
        os.sched_setaffinity(0, before)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer.pop("seconds") > 0
    return answer

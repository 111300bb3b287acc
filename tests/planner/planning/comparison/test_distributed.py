"""The sweep on a real Dask cluster: a scheduler and two workers, one of them killed.

Needs the extra [distributed]; `pytest -m distributed`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from purchases import JOB, written

pytestmark = pytest.mark.distributed
ROOT = Path(__file__).resolve().parents[4]
PATIENCE_S = 120.0
BAD_INPUT = 2
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16)


def candidates() -> list[dict[str, Any]]:
    """Eight, each of which takes a worker a second or so."""
    return [
        {
            "name": f"{nodes} nodes",
            "cluster": {"node": "dgx-h100"},
            "nodes": nodes,
            "price": "2.5 USD/GPU-h",
        }
        for nodes in COUNTS
    ]


def job() -> dict[str, Any]:
    """A space that is large enough to be in the middle of."""
    limits = {"tp": [1, 2, 4, 8], "recompute": ["none", "full"]}
    return {**JOB, "search": limits}


def waited_for(done: Callable[[], Any]) -> Any:
    """What *done* says once it says something."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if value := done():
            return value
        time.sleep(0.02)
    raise AssertionError("nothing happened in time")


class Cluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.folder, self.stack = folder, stack
        self.file = folder / "scheduler.json"
        self._start("scheduler", "--port", "0", "--dashboard-address", ":0")
        waited_for(self.file.exists)
        self.address = waited_for(self._address)
        self.workers = [
            self._start("worker", "--no-nanny", "--nthreads", "1", "--no-dashboard")
            for _ in range(2)
        ]

    def _address(self) -> str:
        try:
            return str(json.loads(self.file.read_text())["address"])
        except ValueError:
            return ""

    def _start(self, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", what, *arguments]
        paths = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        process = subprocess.Popen(
            [*command, "--scheduler-file", str(self.file)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def tasks(self) -> dict[str, Any]:
        """What each worker that the scheduler knows has to do."""
        from distributed import Client  # noqa: PLC0415

        with Client(self.address, set_as_default=False) as client:
            return dict(client.processing())


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path)


def planner(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "planner", "compare", *map(str, arguments)]
    return subprocess.Popen(
        [*command, "--tolerance", "0", "--time-limit", "300", "--json", "-"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def timeless(value: Any) -> Any:
    """An answer without the seconds that it took."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k != "seconds"}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def test_a_killed_worker_costs_nothing_but_time(
    cluster: Cluster, tmp_path: Path
) -> None:
    """All candidates finish, and the answer is that of one machine, to the last digit.

    The worker sleeps over its candidates, so that no machine is too fast for the test.
    It is killed when the other one has finished some. What is on disk then is not
    planned again by the same command.
    """
    file, kept = written(tmp_path, job=job(), candidates=candidates()), tmp_path / "k"
    waited_for(lambda: len(cluster.tasks()) == len(cluster.workers))
    os.kill(cluster.workers[0].pid, signal.SIGSTOP)
    sweep = planner(file, "--scheduler", cluster.address, "--resume", kept)
    waited_for(lambda: kept.is_dir() and list(kept.glob("*.json")))
    assert any(cluster.tasks().values())
    assert len(list(kept.glob("*.json"))) < len(COUNTS)
    os.kill(cluster.workers[0].pid, signal.SIGKILL)
    there = answer_of(sweep)
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert cluster.workers[1].poll() is None
    assert [one["status"] for one in there["candidates"]] == ["optimal"] * len(COUNTS)
    assert timeless(there) == timeless(answer_of(planner(file)))
    started = {path: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    again = answer_of(planner(file, "--resume", kept))
    assert again["candidates"] == there["candidates"]
    assert {path: path.stat().st_mtime_ns for path in kept.glob("*.json")} == started


@pytest.mark.parametrize("more", [(), ("--fall-back",)])
def test_the_last_worker_that_dies_is_told(
    cluster: Cluster, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """The sweep waited for a worker that might come, past every limit."""
    file = written(tmp_path, job=job(), candidates=candidates())
    waited_for(lambda: len(cluster.tasks()) == len(cluster.workers))
    for worker in cluster.workers:
        os.kill(worker.pid, signal.SIGSTOP)
    sweep = planner(file, "--scheduler", cluster.address, *more)
    waited_for(lambda: any(cluster.tasks().values()))
    for worker in cluster.workers:
        os.kill(worker.pid, signal.SIGKILL)
    out, err = sweep.communicate(timeout=PATIENCE_S)
    assert "the scheduler has no workers" in err
    assert sweep.returncode == (0 if more else BAD_INPUT)
    assert len(json.loads(out)["candidates"] if more else []) == len(more) * len(COUNTS)


def test_a_scheduler_that_is_gone_is_one_message(tmp_path: Path) -> None:
    """And a reason to plan here only where that is asked for."""
    file = written(tmp_path, job=JOB, candidates=candidates()[:1])
    gone = "tcp://127.0.0.1:1"
    process = planner(file, "--scheduler", gone)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (BAD_INPUT, "")
    assert "--scheduler: the scheduler cannot be reached" in err
    assert len(err.strip().splitlines()) == 1
    here = planner(file, "--scheduler", gone, "--fall-back")
    out, err = here.communicate(timeout=120)
    assert here.returncode == 0
    assert "planning on this machine" in err
    assert json.loads(out)["candidates"][0]["status"] == "optimal"

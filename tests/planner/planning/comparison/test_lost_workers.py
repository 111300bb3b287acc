"""Workers of a cluster that die: what they finished is told, with exit code 4."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from planner.cli import app

TIME_LIMIT = 4
BAD_INPUT = 2
JOB = "tiny-llama-2-a6000"
FEW = ("--set", "search.micro_batch=1", "--set", "search.recompute=none")


class Future:
    """A task that was handed to a worker, done when it is asked for."""

    def __init__(self, key: int, call: Callable[[], Any]) -> None:
        self.key, self.result = key, call


class Client:
    """A scheduler whose one worker dies after so many tasks of its life."""

    left = 1
    began = False

    def __init__(self, address: str, **_: Any) -> None:
        self.loop, self.count = address, 0

    def submit(self, _run: Any, work: Any, task: Any, **_: Any) -> Future:
        self.count += 1
        return Future(self.count, lambda: work(task))

    def wait_for_workers(self, _count: int, **_: Any) -> None:
        """The worker is there at first, whatever it does then."""
        if Client.left <= 0 and Client.began:
            raise TimeoutError
        Client.began = True

    def close(self, **_: Any) -> None:
        """Nothing is open."""


def as_completed(futures: Iterable[Future], **_: Any) -> Iterator[Future]:
    for future in list(futures):
        if Client.left <= 0:
            raise TimeoutError
        Client.left -= 1
        yield future


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a cluster of one worker in Dask's place."""
    fake, inner = ModuleType("distributed"), ModuleType("distributed.client")
    kinds = {name: type(name, (Exception,), {}) for name in ("KilledWorker", "Gone")}
    vars(fake).update(Client=Client, as_completed=as_completed, **kinds)
    vars(inner).update(FutureCancelledError=kinds["Gone"])
    monkeypatch.setitem(sys.modules, "distributed", fake)
    monkeypatch.setitem(sys.modules, "distributed.client", inner)


def run(*words: object) -> tuple[int, dict[str, Any], str]:
    on = ("--scheduler", "tcp://fake:1", "--json", "-")
    answer = CliRunner().invoke(app, [*map(str, words), *on])
    return answer.exit_code, json.loads(answer.stdout or "{}"), answer.stderr


@pytest.mark.usefixtures("dask")
@pytest.mark.parametrize(
    ("finished", "leaves"), [(0, BAD_INPUT), (1, TIME_LIMIT), (3, TIME_LIMIT), (4, 0)]
)
def test_a_sweep_tells_what_was_finished(
    finished: int, leaves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "left", finished)
    monkeypatch.setattr(Client, "began", False)
    over = ("--over", "training.global_batch=8,16", "--over", "search.tp=1,2")
    code, answer, told = run("sweep", JOB, *FEW, *over)
    assert code == leaves
    cells = answer.get("cells", [])
    assert len(cells) == (4 if finished else 0)
    assert [bool(cell["plan"]) for cell in cells] == [
        place < finished for place in range(len(cells))
    ]
    assert all(bool(cell["plan"]) != cell["out_of_time"] for cell in cells)
    assert ("the scheduler has no workers" in told) == (leaves != 0)


@pytest.mark.usefixtures("dask")
def test_a_comparison_tells_what_was_finished(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Client, "left", 1)
    monkeypatch.setattr(Client, "began", False)
    file = tmp_path / "purchase.yaml"
    clusters = [
        {"name": f"{nodes} nodes", "node": "dgx-h100", "nodes": nodes}
        for nodes in (1, 2)
    ]
    job = {
        "model": "llama-3.1-8b",
        "cluster": clusters[0],
        "training": {"seq_len": 4096, "global_batch": 64, "tokens": 1e9},
    }
    candidates = [{"cluster": each} for each in clusters]
    file.write_text(yaml.safe_dump({"job": job, "candidates": candidates}))
    code, answer, told = run("compare", file, "--effort", "0.05")
    assert code == TIME_LIMIT
    assert "the scheduler has no workers" in told
    first, second = answer["candidates"]
    assert first["plan"] is not None
    assert (second["plan"], second["status"]) == (None, "unknown")

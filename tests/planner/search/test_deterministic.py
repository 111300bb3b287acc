"""The same answer in any process: hash seeds, threads and neighbours change nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import joblib
import pytest
from strategies import small_job
from tiny_models import TINY_MIXTRAL

from planner.cost.pricing import Pricing
from planner.job.resolve import resolve
from planner.job.variants import variants
from planner.search.best_first import search_all
from planner.search.solver import ahead
from planner.search.solver.box_program import Solved
from planner.search.spread import alone
from planner.search.stop import Stop
from planner.specs.reading.read import read_spec
from planner.specs.search import SearchSpec

ROOT = Path(__file__).resolve().parents[3]
SURROUNDINGS = (
    {"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"},
    {"PYTHONHASHSEED": "2024", "OMP_NUM_THREADS": "2"},
)


def jobs() -> list[Pricing]:
    """A pipeline of several schedules, and experts with offload left open."""
    piped = SearchSpec(space="full", tp=1, cp=1, micro_batch=(1, 2), dp_shard=2)
    routed = SearchSpec(tp=(1, 2), pp=(1, 2), offload=True, method=("full", "lora"))
    return [
        small_job(piped, name="torchtitan", node="h100-pcie-4"),
        small_job(routed, node="h100-pcie-4", config=TINY_MIXTRAL),
    ]


def answer(job: Pricing) -> list[object]:
    """Layouts, splits, steps, bounds, and what every rule removed."""
    return [
        [
            [(f.step_s, f.device_bytes, f.fields, f.counts.tolist()) for f in o.ranked],
            o.bound_s,
            o.pruned,
            o.solved,
            o.worked,
        ]
        for o in search_all(variants([job]), top=3)
    ]


def answers() -> list[object]:
    """The answer to each job."""
    return [answer(job) for job in jobs()]


def alike(found: object) -> object:
    """As it comes back from another process."""
    return json.loads(json.dumps(found))


@pytest.fixture(scope="module")
def here() -> object:
    return alike(answers())


@pytest.mark.slow
def test_two_processes_side_by_side_answer_alike(here: object) -> None:
    """Each with its own hash seed and threads, both at once."""
    helpers = ("tests/support", "tests/planner/search/exhaustive")
    places = [ROOT, *(ROOT / path for path in helpers), Path(__file__).parent]
    folders = os.pathsep.join(map(str, places))
    script = "import json, test_deterministic as t; print(json.dumps(t.answers()))"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONPATH": folders} | surroundings,
            stdout=subprocess.PIPE,
            text=True,
        )
        for surroundings in SURROUNDINGS
    ]
    for process in running:
        out, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        assert json.loads(out) == here


@pytest.mark.slow
def test_a_second_search_answers_alike(here: object) -> None:
    assert alike(answers()) == here


@pytest.mark.slow
def test_other_cores_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of many programs, with two processes beside it and with none."""
    path = ROOT / "configs/jobs/mt-nlg-530b-2240-a100.yaml"
    job = resolve(read_spec(path), file=path.name, base=path.parent)[0]
    with alone():
        by_one = answer(job)
    monkeypatch.setattr(ahead, "WARM_UP_S", -1.0)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 3)
    fetched, theirs = ahead.Ahead._fetched, list[ahead.Ticket]()

    def counted(them: ahead.Ahead, ticket: ahead.Ticket, stop: Stop) -> Solved:
        theirs.append(ticket)
        return fetched(them, ticket, stop)

    monkeypatch.setattr(ahead.Ahead, "_fetched", counted)
    assert answer(job) == by_one
    assert theirs

"""The same answer in any process: hash seeds, threads and neighbours change nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from strategies import small_job
from tiny_models import TINY_MIXTRAL

from planner.cost.pricing import Pricing
from planner.job.variants import variants
from planner.search.best_first import search_all
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


def answers() -> list[object]:
    """Layouts, splits, steps, bounds, and what every rule removed, of each job."""
    return [
        [
            [(f.step_s, f.device_bytes, f.fields, f.counts.tolist()) for f in o.ranked],
            o.bound_s,
            o.pruned,
            o.solved,
        ]
        for job in jobs()
        for o in search_all(variants([job]), top=3)
    ]


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

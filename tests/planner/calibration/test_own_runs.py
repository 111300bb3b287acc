"""A user's own run is predicted as its job is, before and after a calibration."""

import json
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tiers import some
from typer.testing import CliRunner

from planner.calibration.fitting.factors import likeliest_factor, spreads
from planner.cli.app import app
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import stack_names

STACKS = [
    (framework.name, stack)
    for framework in FRAMEWORKS
    for stack in stack_names(framework.name)
]
FIRST = {framework.name: stack_names(framework.name)[0] for framework in FRAMEWORKS}
"""The stack of each framework that the fast suite takes."""
TIMES = (0.7, 0.85, 1.2, 1.5)
"""Measured over predicted step of the rows; each stack takes one in turn. [1]"""
HAND_SET = {"clock": 0.9, "memory_traffic": 2.0, "latency": 3.0}


def kept(times: float) -> float:
    """Log of the factor that a job takes from one allocated peak. [1]."""
    return likeliest_factor(np.array([log(times)]), spreads().allocated)


def job_of(framework: str, stack: dict[str, Any], **layout: Any) -> dict[str, Any]:
    return {
        "model": "llama-3-8b",
        "cluster": "dgx-a100-1-node",
        "training": {"seq_len": 4096, "global_batch": 16},
        "framework": framework,
        "stack": stack,
        "layout": {"tp": 1, "micro_batch": 1, **layout},
    }


def row_of(
    name: str, job: dict[str, Any], step_s: float, memory_gib: float = 50.0
) -> dict[str, Any]:
    """A measured run of a job, whose blocks say little and whose spec says all."""
    tp, pp = job["layout"]["tp"], job["layout"].get("pp", 1)
    model = {"name": "x", "layers": 32, "hidden": 4096, "heads": 32, "vocab": 128256}
    return {
        "id": name,
        "model": model,
        "hardware": {"gpu": "a100", "gpus": 8},
        "job": {
            "seq_len": 4096,
            "global_batch": 16,
            "precision": "bf16",
            "framework": job["framework"],
        },
        "layout": {"tp": tp, "pp": pp, "dp": 8 // tp // pp},
        "measured": {
            "step_time_s": step_s,
            "peak_memory_gb": memory_gib,
            "memory_kind": "GiB allocated",
        },
        "spec": job,
    }


class Bench:
    """The commands on files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, content: object) -> str:
        path = self.folder / name
        path.write_text(yaml.safe_dump(content))
        return str(path)

    def ask(self, *words: str) -> Any:
        done = CliRunner().invoke(app, [*words, "--json", "-"])
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    def predict(self, job: dict[str, Any], *words: str) -> tuple[float, float]:
        """Step [s] and allocated memory [GiB]."""
        its = self.ask("predict", self.write("job.yaml", job), *words)["estimate"]
        memory = its["memory"]["peak_allocated_gib"]
        return its["step_time_s"]["value"], memory["value"]

    def validate(self, rows: list[object], *words: str) -> list[tuple[float, float]]:
        found = self.ask("validate", self.write("rows.yaml", rows), *words)["rows"]
        assert [row["status"] for row in found] == ["ok"] * len(rows), found
        said = [row["predicted"] for row in found]
        return [(one["step_time_s"], one["peak_memory_gib"]) for one in said]

    def calibrate(self, rows: list[object]) -> str:
        out = str(self.folder / "mine.yaml")
        words = ["calibrate", self.write("rows.yaml", rows), "--out", out]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.stderr
        return out


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    ("framework", "stack", "times"),
    [
        pytest.param(
            *pair,
            TIMES[n % len(TIMES)],
            marks=[pytest.mark.slow] * (pair not in FIRST.items()),
        )
        for n, pair in enumerate(STACKS)
    ],
)
def test_every_stack_predicts_validates_and_calibrates_alike(
    framework: str, stack: str, times: float, bench: Bench
) -> None:
    job = job_of(framework, {"name": stack}, recompute="full")
    predicted = bench.predict(job)
    row = row_of("run", job, times * predicted[0], times * predicted[1])
    assert bench.validate([row]) == [pytest.approx(predicted)]
    own = ("--calibration", bench.calibrate([row]))
    step, memory = bench.predict(job, *own)
    assert step == pytest.approx(times * predicted[0], rel=0.005)
    assert log(memory / predicted[1]) == pytest.approx(kept(times), rel=0.01)
    assert bench.validate([row], *own) == [pytest.approx((step, memory))]


@pytest.mark.parametrize("times", some((0.7, 1.5), 2))
def test_a_job_whose_constants_are_set_by_hand_is_calibrated_too(
    times: float, bench: Bench
) -> None:
    job = job_of("torchtitan", HAND_SET)
    step, _ = bench.predict(job)
    own = bench.calibrate([row_of("run", job, times * step)])
    again, _ = bench.predict(job, "--calibration", own)
    assert again == pytest.approx(times * step, rel=0.005)


@pytest.mark.slow
def test_several_rows_of_several_rooms_are_each_brought_to_their_own(
    bench: Bench,
) -> None:
    """One file of rows: stacks of one name in two rooms, and layouts of one stack."""
    times, slower = 1.4, 1.5
    jobs = [
        *((job_of("megatron", {}, **lay), times) for lay in LAYOUTS),
        (job_of("accelerate", {"name": "hf-trainer"}), slower),
        (job_of("deepspeed", {"name": "hf-trainer"}), times),
    ]
    steps = [bench.predict(job)[0] for job, _ in jobs]
    rows = [
        row_of(f"run {n}", job, c * step)
        for n, ((job, c), step) in enumerate(zip(jobs, steps, strict=True))
    ]
    own = bench.calibrate(list(rows))
    first = Path(own).read_text()
    for (job, c), step in zip(jobs, steps, strict=True):
        again, _ = bench.predict(job, "--calibration", own)
        assert again == pytest.approx(c * step, rel=0.005)
    assert Path(bench.calibrate(list(rows))).read_text() == first


LAYOUTS = (
    {"tp": 1},
    {"tp": 2, "micro_batch": 2},
    {"tp": 4},
    {"tp": 2, "pp": 2},
    {"tp": 8},
)


def test_a_calibrated_plan_is_verified_and_priced_as_predicted(bench: Bench) -> None:
    job = job_of("megatron", {})
    step, memory = bench.predict(job)
    row = row_of("run", job, 0.8 * step, 1.1 * memory)
    own = ("--calibration", bench.calibrate([row]))
    file = bench.write("job.yaml", job)
    limits = ["--set", "search.tp=2", "--set", "search.pp=1", *own]
    (plan, *_) = bench.ask("plan", file, *limits)["plans"]
    its = plan["estimate"]
    assert its["stack"]["step_factor"] == pytest.approx(0.8, abs=1e-4)
    assert its["stack"]["memory_factor"] == pytest.approx(exp(kept(1.1)), abs=1e-4)
    whole = its["step_time_s"]["value"]
    assert sum(its["time_breakdown_s"].values()) == pytest.approx(whole)
    layout = {k: v for k, v in plan["layout"].items() if v is not None}
    again = bench.predict(job | {"layout": layout}, *own)
    held = its["memory"]["peak_allocated_gib"]["value"]
    assert again == (pytest.approx(whole), pytest.approx(held))

"""What is planned can be written, and what is written reads back as it was planned.

Jobs are drawn over frameworks, methods, families, formats, optimizers and limits; one
that a framework cannot run is refused by name before any search.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.job.loading import Job, load
from planner.job.resolve import resolve
from planner.launch import emit_own, read_plan
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.importing import UserOverrides, import_spec, read_texts
from planner.launch.read_plan import PlanFile
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import complete
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

FRAMEWORKS = ("megatron", "torchtitan", "accelerate", "deepspeed", "any")
MODELS = (
    "llama-3.2-1b",
    "qwen2.5-0.5b",
    "qwen3-0.6b",
    "mistral-7b",
    "gpt2",
    "opt-1.3b",
    "gemma-2b",
    "pythia-6.9b",
    "olmoe-1b-7b",
    "deepseek-v2-lite",
    "phi-3-mini",
)
CLUSTERS = ("rtx-4090-1", "a6000-2", "dgx-a100-1-node", "dgx-a100-1-node")
METHODS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"method": "lora"},
    {"method": "lora", "lora": {"targets": "all-linear"}},
    {"method": "qlora", "lora": {"targets": "attention", "rank": 8}},
)
LIMITS: dict[str, tuple[Any, ...]] = {
    "tp": (1, 2, 4),
    "pp": (1, 2),
    "cp": (1, 2),
    "zero_stage": (0, 1, 2, 3),
    "offload": (True,),
    "recompute": ("none", "full"),
    "micro_batch": (1, 2),
}
STACKS: dict[str, tuple[dict[str, str], ...]] = {
    "accelerate": (
        {},
        {},
        {"name": "hf-trainer"},
        {"name": "hf-amp"},
        {"name": "hf-bf16"},
        {"loss": "chunked"},
        {"attention": "eager"},
    ),
    "torchtitan": ({}, {}, {"name": "torchtitan-eager"}),
}


def drawn(framework: str, rng: random.Random) -> dict[str, Any]:
    """A job of one framework, legal or not."""
    axes = rng.sample(list(LIMITS), rng.choice((0, 0, 1, 1, 2)))
    training = {
        "seq_len": rng.choice((256, 512, 1024)),
        "global_batch": rng.choice((8, 16, 24)),
        "precision": rng.choice(("bf16", "bf16", "bf16", "fp16")),
        "optimizer": rng.choice(
            ("adamw", "adamw", "adamw", "adamw", "sgd", "adamw-8bit")
        ),
    }
    return {
        "model": rng.choice(MODELS),
        "cluster": rng.choice(CLUSTERS),
        "training": training | rng.choice(METHODS),
        "framework": framework,
        "stack": rng.choice(STACKS.get(framework, ({},))),
        "search": {axis: rng.choice(LIMITS[axis]) for axis in axes},
    }


def planned(job: Job, folder: Path) -> PlanFile | None:
    """A plan of a job as `planner emit` reads it; None where none was found."""
    result = optimize(job.workloads, top=1, time_limit=20.0, tolerance=0.5)
    if not result.plans:
        return None
    best = result.plans[0]
    plan = Plan(
        spec=job.resolved(best),
        layout=best.layout,
        estimate=best.estimate,
        versions={"planner": "0"},
    )
    path = folder / "plan.json"
    path.write_text(plan.model_dump_json(by_alias=True))
    return read_plan(path)


def read_back(plan: PlanFile, job: JobSpec) -> JobSpec:
    """The job that `planner import` makes of the plan's folder."""
    written = {file.name: file.text for file in emit_own(plan)}
    files = {n: t for n, t in written.items() if n not in (PLAN, README, CHECK)}
    reading = read_texts(files, None, "the folder")
    told = UserOverrides(model=str(job.model), cluster=str(job.cluster))
    return JobSpec.model_validate(import_spec(reading, told, ()))


def check(fields: dict[str, Any], folder: Path) -> bool:
    """Whether a job was planned; if so its folder says what was planned."""
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(fields))
    try:
        job = load(path, (), catalog=SHIPPED)
        plan = planned(job, folder)
    except BadInputError as error:
        assert error.field, error  # noqa: PT017
        return False
    if plan is None:
        return False
    spec = read_back(plan, job.spec)
    (workload,) = resolve(spec, file="read back", base=folder)
    assert isinstance(spec.layout, PartialLayout)
    assert complete(workload, spec.layout) == plan.plan.layout, json.dumps(fields)
    its, mine = workload.training, plan.pricing.training
    assert (its.precision, its.optimizer, its.method) == (
        mine.precision,
        mine.optimizer,
        mine.method,
    ), json.dumps(fields)
    return True


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_planned_job_is_written_and_reads_back(
    framework: str, tmp_path: Path
) -> None:
    rng = random.Random(framework)  # noqa: S311
    for _ in range(2):
        check(drawn(framework, rng), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_most_of_many_jobs_are_written_and_read_back(
    framework: str, tmp_path: Path
) -> None:
    rng = random.Random(f"many {framework}")  # noqa: S311
    found = [check(drawn(framework, rng), tmp_path) for _ in range(8)]
    assert any(found)

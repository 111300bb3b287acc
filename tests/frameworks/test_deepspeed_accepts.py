"""DeepSpeed's own parser takes what is emitted, and refuses what is wrong."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

LAUNCH = Path(__file__).parents[1] / "planner" / "launch"
SCRIPT = Path(__file__).parent / "deepspeed" / "accepts.py"
sys.path.insert(0, str(LAUNCH))

from deepspeed_plans import LAYOUTS, drawn_plans, plan_file  # noqa: E402  # beside these
from many_plans import jobs  # noqa: E402
from target_gaps import deepspeed as gaps  # noqa: E402

from planner.frameworks.deepspeed.launch.known import unknown  # noqa: E402
from planner.launch import PlanFile  # noqa: E402
from planner.launch.targets.deepspeed.writer import configuration  # noqa: E402

pytestmark = pytest.mark.frameworks
Json = dict[str, Any]
COUNT = 24
MARK = "ANSWER "
ZERO = "zero_optimization"
WRONG: dict[str, tuple[str, Json]] = {
    "a stage": ("zero 2", {ZERO: {"stage": 7}}),
    "a key of ZeRO": ("zero 2", {ZERO: {"stage": 2, "overlap_com": True}}),
    "a key of tensor parallelism": ("tp", {"tensor_parallel": {"autotp_sz": 2}}),
    "the batch": ("zero 2", {"train_batch_size": 6}),
    "the batch under tp": ("tp", {"train_batch_size": 8}),
    "two formats": ("zero 2", {"fp16": {"enabled": True}}),
    "a block that is gone": ("zero 2", {"eigenvalue": {"enabled": True}}),
    "shards that are gone": ("zero 3", {ZERO: {"stage": 3, "mics_shard_size": 2}}),
    "a device": ("zero 3", {ZERO: {"stage": 3, "offload_param": {"device": "tape"}}}),
    "a ratio": ("zero 3", {ZERO: {"stage": 3, "offload_optimizer": {"ratio": 2}}}),
}
SILENT: dict[str, Json] = {
    "gradient_cliping": {"gradient_cliping": 1.0},
    "pipeline.intervl": {"pipeline": {"intervl": 1}},
    "activation_checkpointing.cpu": {"activation_checkpointing": {"cpu": True}},
}
"""What the parser lets pass, by the path that the schema of ours names."""


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlanFile]:
    folder = tmp_path_factory.mktemp("plans")
    named = {name: plan_file(name, folder) for name in LAYOUTS}
    drawn = (plan for job in jobs("deepspeed") for plan in drawn_plans(job, COUNT))
    able = [plan for plan in drawn if not gaps(plan.brief)]
    return named | {f"drawn {number}": plan for number, plan in enumerate(able)}


def question(one: PlanFile, wrong: Json | None = None) -> Json:
    its = one.plan.layout
    return {
        "world": its.gpus,
        "pp": its.pp,
        "cp": its.cp,
        "ep": its.ep > 1,
        "config": configuration(one.brief) | (wrong or {}),
    }


@pytest.fixture(scope="module")
def said(
    run_in: Run, plans: dict[str, PlanFile], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Json]:
    """Answers to all that is asked here, by name; one process gives them."""
    wrong = {what: question(plans[name], more) for what, (name, more) in WRONG.items()}
    silent = {path: question(plans["zero 2"], more) for path, more in SILENT.items()}
    asked = {name: question(one) for name, one in plans.items()} | wrong | silent
    file = tmp_path_factory.mktemp("asked") / "questions"
    file.write_text("".join(json.dumps(one) + "\n" for one in asked.values()))
    done = run_in("deepspeed", [str(SCRIPT), str(file)], timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [one for one in done.stdout.splitlines() if one.startswith(MARK)]
    answers = [json.loads(one.removeprefix(MARK)) for one in lines]
    return dict(zip(asked, answers, strict=True))


def test_every_axis_is_accepted_as_it_was_planned(
    plans: dict[str, PlanFile], said: dict[str, Json]
) -> None:
    assert len(plans) > 60
    for name, one in plans.items():
        assert said[name] == {"accepted": True, **expected(one)}, name


def expected(one: PlanFile) -> Json:
    """What the parser should have understood of a plan."""
    its = one.plan.layout
    full = any(p.kind == "full" for s in its.stages for p in s.recompute)
    return {
        # Tensor ranks count as replicas where the parser alone is asked.
        "batch": one.brief.training.sequences * its.tp,
        "micro_batch": its.micro_batch,
        "grad_accum": its.grad_accum,
        "zero_stage": its.zero_stage,
        "hpz": its.hpz,
        "tp": its.tp if its.tp > 1 else 0,
        "ep": its.ep,
        "optimizer": its.offload.optimizer,
        "device": its.offload.device if its.offload.optimizer else "none",
        "parameters": float(its.offload.parameters > 0),
        "interval": int(full and its.pp > 1),
        "bf16": True,
    }


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_setting_is_refused(what: str, said: dict[str, Json]) -> None:
    assert not said[what]["accepted"]


@pytest.mark.parametrize("path", SILENT)
def test_what_its_parser_lets_pass_is_caught_by_ours(
    path: str, plans: dict[str, PlanFile], said: dict[str, Json]
) -> None:
    assert said[path]["accepted"]
    assert list(unknown(question(plans["zero 2"], SILENT[path])["config"])) == [path]

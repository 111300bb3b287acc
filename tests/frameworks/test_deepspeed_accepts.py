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

from deepspeed_plans import LAYOUTS, plan_file  # noqa: E402  # of the tests beside these

from planner.launch.deepspeed.known import unknown  # noqa: E402
from planner.launch.deepspeed.writer import configuration  # noqa: E402

pytestmark = pytest.mark.frameworks
Json = dict[str, Any]


def answers(run_in: Run, folder: Path, questions: list[Json]) -> list[Json]:
    asked = folder / "questions"
    asked.write_text("".join(json.dumps(one) + "\n" for one in questions))
    done = run_in("deepspeed", [str(SCRIPT), str(asked)], timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    mark = "ANSWER "
    return [json.loads(one.removeprefix(mark)) for one in lines if mark in one[:7]]


def test_every_axis_is_accepted_as_it_was_planned(run_in: Run, tmp_path: Path) -> None:
    plans = [plan_file(name, tmp_path) for name in LAYOUTS]
    assert len(plans) > 15
    questions = [
        {
            "world": one.plan.layout.gpus,
            "pp": one.plan.layout.pp,
            "cp": one.plan.layout.cp,
            "ep": one.plan.layout.ep > 1,
            "config": configuration(one.brief),
        }
        for one in plans
    ]
    found = answers(run_in, tmp_path, questions)
    for name, one, said in zip(LAYOUTS, plans, found, strict=True):
        assert said.pop("accepted"), (name, said)
        its = one.plan.layout
        # Tensor ranks count as replicas where the parser alone is asked.
        assert said.pop("batch") == one.brief.training.sequences * its.tp, name
        hybrid = its.zero_stage == 3 and its.dp_shard < its.dp * its.cp
        full = any(p.kind == "full" for s in its.stages for p in s.recompute)
        assert said == {
            "micro_batch": its.micro_batch,
            "grad_accum": its.grad_accum,
            "zero_stage": its.zero_stage,
            "dp_shard": its.dp_shard if hybrid else 1,
            "tp": its.tp if its.tp > 1 else 0,
            "ep": its.ep,
            "optimizer": its.offload.optimizer,
            "device": its.offload.device if its.offload.optimizer else "none",
            "parameters": float(its.offload.parameters > 0),
            "interval": int(full and its.pp > 1),
            "bf16": True,
        }, name


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


def test_wrong_settings_are_refused(run_in: Run, tmp_path: Path) -> None:
    cases = [(plan_file(name, tmp_path), wrong) for name, wrong in WRONG.values()]
    questions = [
        {"world": one.plan.layout.gpus, "config": configuration(one.brief) | wrong}
        for one, wrong in cases
    ]
    found = answers(run_in, tmp_path, questions)
    taken = [what for what, said in zip(WRONG, found, strict=True) if said["accepted"]]
    assert taken == []


def test_what_its_parser_lets_pass_is_caught_by_ours(
    run_in: Run, tmp_path: Path
) -> None:
    one = plan_file("zero 2", tmp_path)
    wrong = [configuration(one.brief) | more for more in SILENT.values()]
    found = answers(run_in, tmp_path, [{"world": 2, "config": its} for its in wrong])
    assert all(said["accepted"] for said in found)
    assert [list(unknown(its)) for its in wrong] == [[path] for path in SILENT]

"""The parsers of accelerate, transformers, TRL and PEFT take what is emitted."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

LAUNCH = Path(__file__).parents[1] / "planner" / "launch"
SCRIPTS = Path(__file__).parent / "accelerate"
sys.path.insert(0, str(LAUNCH))

from accelerate_plans import drawn_plans, jobs  # noqa: E402  # beside these
from golden_folders import ROOT  # noqa: E402

from planner.frameworks.accelerate.launch.known import FILE  # noqa: E402
from planner.launch.brief import Brief  # noqa: E402
from planner.launch.targets.accelerate.arguments import arguments  # noqa: E402
from planner.launch.targets.accelerate.placement import placement, zero  # noqa: E402
from planner.launch.targets.accelerate.plan import deepspeed, fsdp  # noqa: E402
from planner.launch.targets.accelerate.run import run  # noqa: E402

pytestmark = pytest.mark.frameworks
COUNT = 10
Run = Callable[..., subprocess.CompletedProcess[str]]
Files = dict[str, Any]


def files_of(brief: Brief) -> Files:
    """Settings of a plan by name of file."""
    its = {
        "accelerate.yaml": placement(brief),
        "training.yaml": arguments(brief),
        "run.yaml": run(brief),
        "config.json": {k: v for k, v in brief.model.items() if k != "name"},
    }
    return its | ({"ds_config.json": zero(brief)} if deepspeed(brief) else {})


def answers(run_in: Run, questions: list[Files]) -> list[dict[str, Any]]:
    text = "\n".join(json.dumps({"files": its}) for its in questions)
    done = run_in(
        "accelerate",
        [str(SCRIPTS / "accepts.py")],
        stdin=text,
        timeout=300,
        env={"DS_ACCELERATOR": "cpu", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (x.partition("ANSWER ")[2] for x in done.stdout.splitlines())
    return [json.loads(line) for line in lines if line]


def golden(case: str) -> Files:
    """Settings of a golden folder, as a reader of YAML and JSON has them."""
    folder = ROOT / "accelerate" / case
    names = ("accelerate.yaml", "training.yaml", "run.yaml", "config.json")
    return {name: yaml.safe_load((folder / name).read_text()) for name in names}


def changed(case: str, name: str, block: str, **values: Any) -> Files:
    its = golden(case)
    inside = its[name].setdefault(block, {}) if block else its[name]
    inside.update(values)
    return its


FSDP, LORA = "llama-3.1-70b-fsdp-32-h100", "llama-3.1-8b-lora-rtx-4090"
MESH = "parallelism_config"
WRONG = {
    "a key at the top": changed(FSDP, "accelerate.yaml", "", num_procs=3),
    "the ranks of the mesh": changed(
        FSDP, "accelerate.yaml", MESH, parallelism_config_dp_shard_size=16
    ),
    "ranks that replicate alone": changed(
        FSDP,
        "accelerate.yaml",
        MESH,
        parallelism_config_dp_shard_size=1,
        parallelism_config_dp_replicate_size=16,
        parallelism_config_tp_size=2,
    ),
    "an argument": changed(FSDP, "training.yaml", "", learning_rat=0.1),
    "the optimizer": changed(FSDP, "training.yaml", "", optim="adamw_of_mine"),
    "both formats": changed(FSDP, "training.yaml", "", fp16=True),
    "an adapter's key": changed(LORA, "run.yaml", "adapters", ranks=8),
    "a tensor mesh of none": changed(FSDP, "run.yaml", "distributed", tp_size=0),
}


def test_every_plan_is_accepted_and_wrong_files_are_not(run_in: Run) -> None:
    """One process answers for all, since its imports are most of the time."""
    plans = [plan for job in jobs() for plan in drawn_plans(job, COUNT)]
    assert len(plans) > 60
    every = [files_of(plan.brief) for plan in plans]
    said = answers(run_in, [*every, *WRONG.values()])
    for plan, one in zip(plans, said, strict=False):
        its = plan.plan.layout
        assert one["accepted"], (one["why"], plan.path, its)
        assert one["fsdp"] is fsdp(plan.brief)
        assert (one["micro_batch"], one["accumulation"]) == (
            its.micro_batch,
            its.grad_accum,
        )
        if one["fsdp"]:
            assert one["reshard"] == str(its.zero_stage == 3).lower()
        if deepspeed(plan.brief):
            assert one["stage"] == its.zero_stage
    bad = zip(WRONG, said[len(plans) :], strict=True)
    assert [what for what, one in bad if one["accepted"]] == []


def test_the_axes_are_all_among_the_plans() -> None:
    """What is accepted above is tensor, context, hybrid and every ZeRO stage."""
    layouts = [p.plan.layout for job in jobs() for p in drawn_plans(job, COUNT)]
    assert {its.zero_stage for its in layouts} == {0, 1, 2, 3}
    assert {its.cp_kind for its in layouts if its.cp > 1} >= {"ring", "all-gather"}
    assert any(its.tp > 1 for its in layouts)
    assert any(1 < its.dp_shard < its.dp * its.cp for its in layouts)
    assert any(its.offload.parameters for its in layouts)
    assert any(its.offload.activations for its in layouts)


def test_the_list_of_keys_is_what_the_libraries_have(run_in: Run) -> None:
    done = run_in("accelerate", [str(SCRIPTS / "keys.py")], timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(FILE.read_text())

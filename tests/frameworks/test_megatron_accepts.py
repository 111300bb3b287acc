"""megatron-core's own configuration takes what is emitted, and no wrong words."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LAUNCH = Path(__file__).parents[1] / "planner" / "launch"
SCRIPTS = Path(__file__).parent / "megatron"
sys.path.insert(0, str(LAUNCH))

from golden_folders import ROOT  # noqa: E402  # of the tests beside these
from many_plans import jobs, many_plans  # noqa: E402  # of the tests beside these
from target_gaps import megatron as gaps  # noqa: E402

from planner.launch.read_plan import PlanFile, read_plan  # noqa: E402
from planner.launch.targets.megatron.arguments import arguments, command_line  # noqa: E402

pytestmark = pytest.mark.frameworks
COUNT = 12
Run = Callable[..., subprocess.CompletedProcess[str]]


def asked(plan: PlanFile, *more: str) -> dict[str, Any]:
    words = [*command_line(arguments(plan.brief)), *more]
    return {"world": plan.plan.layout.gpus, "words": words}


def answers(run_in: Run, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    text = "\n".join(map(json.dumps, questions))
    done = run_in("megatron", [str(SCRIPTS / "accepts.py")], stdin=text, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def plans() -> list[PlanFile]:
    every = (plan for job in jobs("megatron") for plan in many_plans(job, COUNT))
    return [plan for plan in every if not gaps(plan.brief)]


def test_every_plan_is_accepted_with_its_stages(run_in: Run) -> None:
    every = plans()
    assert len(every) > 60
    for plan, said in zip(every, answers(run_in, list(map(asked, every))), strict=True):
        layout = plan.plan.layout
        assert said["accepted"], (said["why"], plan.path, layout)
        assert said["vpp"] == layout.vpp
        if said["stages"] is not None:
            assert tuple(said["stages"]) == layout.layers_per_stage


def test_a_plan_on_two_pools_is_accepted_with_its_stages(run_in: Run) -> None:
    """All ranks of a mixed fleet have the same arguments."""
    plan = read_plan(ROOT / "slurm" / "llama-3.1-8b-16-h100-8-a100" / "plan.json")
    (said,) = answers(run_in, [asked(plan)])
    assert said["accepted"], said["why"]
    assert tuple(said["stages"]) == plan.plan.layout.layers_per_stage


WRONG = {
    "the ranks": ["--tensor-model-parallel-size", "5"],
    "the batch": ["--global-batch-size", "7"],
    "the stages": ["--pipeline-model-parallel-layout", "Et*3|t*4L"],
    "the recompute module": [
        "--recompute-granularity",
        "selective",
        "--recompute-modules",
        "everything",
    ],
    "the recompute method": ["--recompute-granularity", "full"],
    "the heads": ["--num-attention-heads", "63"],
    "an option": ["--no-such-option"],
    "the number format": ["--fp16"],
}


def test_wrong_command_lines_are_refused(run_in: Run) -> None:
    (job,) = (j for j in jobs("megatron") if j.name == "llama-3.1-70b-32-h100")
    plan = next(
        p
        for p in many_plans(job, COUNT)
        if not gaps(p.brief) and p.plan.layout.tp > 1 and not _recomputes(p)
    )
    good, *bad = answers(
        run_in, [asked(plan), *(asked(plan, *w) for w in WRONG.values())]
    )
    assert good["accepted"], good
    taken = [what for what, said in zip(WRONG, bad, strict=True) if said["accepted"]]
    assert taken == []


def _recomputes(plan: PlanFile) -> bool:
    stages = plan.plan.layout.stages
    return any(part.kind != "none" for s in stages for part in s.recompute)

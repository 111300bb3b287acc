"""TRL's own parser takes what is emitted, and `trl sft` trains it on a CPU."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from make_environments import python_of

LAUNCH = Path(__file__).parents[1] / "planner" / "launch"
SCRIPTS = Path(__file__).parent / "accelerate"
sys.path.insert(0, str(LAUNCH))

from accelerate_plans import drawn_plans, filed, jobs, plan_of  # noqa: E402  # beside
from golden_folders import ROOT  # noqa: E402
from ports import free_port  # noqa: E402
from target_gaps import trl as gaps  # noqa: E402

from planner.launch import emit, write_folder  # noqa: E402
from planner.launch.brief import Brief  # noqa: E402
from planner.launch.read_plan import PlanFile  # noqa: E402
from planner.launch.targets.accelerate.placement import placement, zero  # noqa: E402
from planner.launch.targets.accelerate.plan import deepspeed  # noqa: E402
from planner.launch.targets.trl.writer import arguments  # noqa: E402

pytestmark = pytest.mark.frameworks
COUNT, STEPS = 8, 8
Run = Callable[..., subprocess.CompletedProcess[str]]
Files = dict[str, Any]
CHUNKED = {"loss": "chunked"}
DEEPSPEED = {"name": "hf-trainer", "loss": "chunked"}
LORA: dict[str, Any] = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}
NARROW = {"method": "lora", "lora": {"rank": 4, "targets": "all-linear"}}
QLORA: dict[str, Any] = {"method": "qlora", "lora": {"rank": 4}}
VARIANTS = {"method": "lora", "lora": LORA["lora"] | {"dora": True, "rslora": True}}
ADAPTERS = {"reference": "adapters"}
COPY = {"reference": "copy"}
BEFORE = {"reference": "precomputed"}
SPECS: list[tuple[int, dict[str, Any], dict[str, Any]]] = [
    (1, {}, {"training": LORA, "stack": CHUNKED}),
    (2, {"zero_stage": 3}, {"training": QLORA, "stack": CHUNKED}),
    (2, {"zero_stage": 3}, {"training": NARROW, "stack": DEEPSPEED}),
    (4, {"zero_stage": 2}, {"stack": DEEPSPEED}),
    (1, {}, {"stack": {"name": "hf-bf16", "loss": "chunked"}}),
    (1, {}, {"training": VARIANTS, "stack": CHUNKED}),
    (1, {"micro_batch": 4}, {"training": LORA | ADAPTERS, "stack": CHUNKED}),
    (2, {"micro_batch": 2, "zero_stage": 3}, {"training": COPY, "stack": CHUNKED}),
    (1, {"micro_batch": 2}, {"training": BEFORE, "stack": CHUNKED}),
]
"""GPUs, layout and blocks of a job that the golden folders have not."""


def files_of(brief: Brief) -> Files:
    """Settings of a plan by name of file."""
    its = {"train.yaml": arguments(brief), "accelerate.yaml": placement(brief)}
    return its | ({"ds_config.json": zero(brief)} if deepspeed(brief) else {})


def question(files: Files) -> str:
    """A line that asks for TRL's parser of one folder; pairs are those of `trl dpo`."""
    pairs = "precompute_ref_log_probs" in files["train.yaml"]
    return json.dumps({"files": files, "script": "dpo" if pairs else "sft"})


def answers(run_in: Run, questions: list[Files]) -> list[dict[str, Any]]:
    done = run_in(
        "accelerate",
        [str(SCRIPTS / "accepts_trl.py")],
        stdin="\n".join(map(question, questions)),
        timeout=300,
        env={"DS_ACCELERATOR": "cpu", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (x.partition("ANSWER ")[2] for x in done.stdout.splitlines())
    return [json.loads(line) for line in lines if line]


def wrong(**values: Any) -> Files:
    """A golden folder's settings with other values in train.yaml."""
    folder = ROOT / "trl" / "llama-3.1-8b-lora-rtx-4090"
    its = {
        name: yaml.safe_load((folder / name).read_text())
        for name in ("train.yaml", "accelerate.yaml")
    }
    its["train.yaml"] |= values
    return its


WRONG = {
    "the optimizer": wrong(optim="adamw_of_mine"),
    "both formats": wrong(fp16=True),
    "both widths": wrong(load_in_4bit=True, load_in_8bit=True),
    "a key": wrong(lora_rank=3),
    "packed pairs": wrong(precompute_ref_log_probs=True, packing=True),
}


def test_every_plan_is_accepted_and_wrong_files_are_not(
    run_in: Run, tmp_path: Path
) -> None:
    """One process answers for all, since its imports are most of the time."""
    plans = [one for job in jobs("trl") for one in drawn_plans(job, COUNT, gaps=gaps)]
    plans += [filed(plan_of(n, its, **spec), tmp_path) for n, its, spec in SPECS]
    assert len(plans) > 12
    said = answers(run_in, [*(files_of(p.brief) for p in plans), *WRONG.values()])
    for plan, one in zip(plans, said, strict=False):
        assert one["accepted"], (one["why"], plan.path, plan.plan.layout)
        _is_as_planned(plan, one)
    bad = zip(WRONG, said[len(plans) :], strict=True)
    assert [what for what, one in bad if one["accepted"]] == []


def _is_as_planned(plan: PlanFile, one: dict[str, Any]) -> None:
    its, training = plan.plan.layout, plan.pricing.training
    assert one["micro_batch"] == its.micro_batch // training.together
    assert one["accumulation"] == its.grad_accum
    assert one["length"] == training.seq_len
    assert one["stage"] == (its.zero_stage if deepspeed(plan.brief) else None)
    assert one["rank"] == (training.lora.rank if training.frozen else None)
    if training.frozen and training.lora.targets == "all-linear":
        assert one["targets"] == "all-linear"
    assert one["bits"] == training.weight_format
    lora = training.lora
    variants = [bool(lora.rslora), bool(lora.dora)] if training.frozen else None
    assert one["variants"] == variants
    if training.reference is not None:
        assert one["before"] is (training.reference == "precomputed")


ON_CPU = (
    "--use_cpu true --bf16 false --dtype float32 --optim adamw_torch "
    f"--attn_implementation eager --learning_rate 0.01 --max_steps {STEPS}"
)


def test_trl_trains_an_emitted_folder(run_in: Run, tmp_path: Path) -> None:
    """The launcher that is emitted starts `trl sft`; losses fall."""
    layout = {"micro_batch": 4, "recompute": "full"}
    plan = plan_of(1, layout, training=LORA, stack=CHUNKED)
    folder, model = _written(run_in, plan, tmp_path)
    losses = trained(folder, model)
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 0.2


def test_trl_trains_pairs_of_an_emitted_folder(run_in: Run, tmp_path: Path) -> None:
    """`trl dpo` starts at the loss of a policy that is its reference, ln 2."""
    layout = {"micro_batch": 4, "recompute": "full"}
    plan = plan_of(1, layout, training=LORA | ADAPTERS, stack=CHUNKED)
    folder, model = _written(run_in, plan, tmp_path)
    losses = trained(folder, model, "pairs")
    assert len(losses) == STEPS
    assert losses[0] == pytest.approx(math.log(2), abs=0.02)
    assert losses[-1] < losses[0] - 0.02


def _written(run_in: Run, plan: PlanFile, where: Path) -> tuple[Path, Path]:
    """Folder of launch files, and folder of a model with texts."""
    folder, model = where / "out", where / "model"
    write_folder(folder, emit(filed(plan, where), "trl"), force=False)
    words = [str(SCRIPTS / "tiny.py"), str(folder / "config.json"), str(model)]
    made = run_in("accelerate", words, env={"HF_HUB_OFFLINE": "1"})
    assert made.returncode == 0, made.stderr[-2000:]
    return folder, model


def trained(folder: Path, model: Path, texts: str = "texts") -> list[float]:
    """Losses of every step of check.sh."""
    binaries = python_of("accelerate").parent
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    own = {
        "PATH": f"{binaries}{os.pathsep}{clean['PATH']}",
        "MODEL": str(model),
        "LEARNING_RATE": "1e-4",
        "DATASET": str(model / texts),
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "CHECKPOINTS": str(folder / "checkpoints"),
    }
    done = subprocess.run(
        ["bash", "check.sh", *ON_CPU.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**clean, **own},
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return [float(x) for x in re.findall(r"'loss': '?([\d.]+)", done.stdout)]

"""axolotl's own schema takes what is emitted, and axolotl trains it on a CPU."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from make_environments import python_of

LAUNCH = Path(__file__).parents[1] / "planner" / "launch"
SCRIPTS = Path(__file__).parent / "axolotl"
sys.path.insert(0, str(LAUNCH))

from accelerate_plans import drawn_plans, filed, jobs, plan_of  # noqa: E402  # beside
from golden_folders import ROOT  # noqa: E402
from target_gaps import axolotl as gaps  # noqa: E402

from planner.frameworks.accelerate.axolotl.known import FILE  # noqa: E402
from planner.launch import emit, write_folder  # noqa: E402
from planner.launch.read_plan import PlanFile  # noqa: E402
from planner.launch.targets.accelerate.plan import fsdp  # noqa: E402
from planner.launch.targets.axolotl.writer import arguments  # noqa: E402

pytestmark = pytest.mark.frameworks
COUNT, STEPS = 8, 8
TINY = SCRIPTS.parent / "accelerate" / "tiny.py"
Run = Callable[..., subprocess.CompletedProcess[str]]
PURE = {"name": "hf-bf16"}
WIDE = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}
VARIANTS = {
    "method": "lora",
    "lora": {"rank": 4, "dora": True, "rslora": True, "loraplus_lr_ratio": 16.0},
}
QLORA = {"method": "qlora", "lora": {"rank": 4}}
SPECS: list[tuple[int, dict[str, Any], dict[str, Any]]] = [
    (1, {"recompute": "full"}, {"training": WIDE}),
    (1, {}, {"training": VARIANTS}),
    (1, {}, {"training": QLORA | {"quantization": "int8"}}),
    (2, {"zero_stage": 3}, {"training": QLORA, "stack": PURE}),
    (4, {"zero_stage": 2, "dp_shard": 2}, {"stack": PURE}),
    (2, {"zero_stage": 3}, {"stack": {"name": "hf-trainer"}}),
    (1, {}, {"stack": {"attention": "fa2", "loss": "liger"}}),
]
"""GPUs, layout and blocks of a job that the golden folders have not."""


def answers(run_in: Run, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = run_in(
        "axolotl",
        [str(SCRIPTS / "accepts.py")],
        stdin="\n".join(map(json.dumps, questions)),
        timeout=300,
        env={"HF_HUB_OFFLINE": "1", "AXOLOTL_DO_NOT_TRACK": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (x.partition("ANSWER ")[2] for x in done.stdout.splitlines())
    return [json.loads(line) for line in lines if line]


RATE = {"learning_rate": 1e-4}
"""What launch.sh adds to a file on axolotl's command line."""


def wrong(case: str, **values: Any) -> dict[str, Any]:
    """A golden folder's YAML with other values."""
    text = (ROOT / "axolotl" / case / "train.yaml").read_text()
    return {"train.yaml": yaml.safe_load(text) | RATE | values, "gpus": 8}


QUANTISED, SHARDED = "llama-3.1-8b-qlora-rtx-4090", "llama-3.1-8b-fsdp-8-a100"
WRONG = {
    "no adapter": wrong(QUANTISED, adapter=None),
    "both widths": wrong(QUANTISED, load_in_8bit=True),
    "the ranks": wrong(QUANTISED, lora_r="many"),
    "an optimizer of bitsandbytes": wrong(SHARDED, optimizer="adamw_bnb_8bit"),
    "a state dict": wrong(SHARDED, fsdp_config={"state_dict_type": "WHOLE"}),
    "both batches": wrong(SHARDED, batch_size=8),
}


def test_every_plan_is_accepted_and_wrong_files_are_not(
    run_in: Run, tmp_path: Path
) -> None:
    """One process answers for all, since its imports are most of the time."""
    jobs_of = jobs("axolotl")
    plans = [one for job in jobs_of for one in drawn_plans(job, COUNT, gaps=gaps)]
    plans += [filed(plan_of(n, its, **spec), tmp_path) for n, its, spec in SPECS]
    assert len(plans) > 12
    asked = [
        {"train.yaml": arguments(one.brief) | RATE, "gpus": one.plan.layout.gpus}
        for one in plans
    ]
    said = answers(run_in, [*asked, *WRONG.values()])
    for plan, one in zip(plans, said, strict=False):
        assert one["accepted"], (one["why"], plan.path, plan.plan.layout)
        _is_as_planned(plan, one)
    bad = zip(WRONG, said[len(plans) :], strict=True)
    assert [what for what, one in bad if one["accepted"]] == []


def _is_as_planned(plan: PlanFile, one: dict[str, Any]) -> None:
    its, training = plan.plan.layout, plan.pricing.training
    assert one["micro_batch_size"] == its.micro_batch
    assert one["gradient_accumulation_steps"] == its.grad_accum
    assert one["sequence_len"] == training.seq_len
    assert one["lora_r"] == (training.lora.rank if training.frozen else None)
    assert not one["lora_qkv_kernel"]
    if fsdp(plan.brief):
        shards = one["fsdp_config"]["reshard_after_forward"]
        assert shards is (its.zero_stage == 3)


def test_the_list_of_keys_is_what_the_schema_has(run_in: Run) -> None:
    done = run_in("axolotl", [str(SCRIPTS / "keys.py")], timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(FILE.read_text())


ON_CPU = (
    "--bf16 False --attn_implementation eager --optimizer adamw_torch "
    f"--learning_rate 0.01 --max_steps {STEPS}"
)


def test_axolotl_trains_an_emitted_folder(run_in: Run, tmp_path: Path) -> None:
    """The command that is emitted starts axolotl's trainer; losses fall."""
    layout = {"micro_batch": 4, "recompute": "full"}
    plan = plan_of(1, layout, training=WIDE)
    folder, model = tmp_path / "out", tmp_path / "model"
    write_folder(folder, emit(filed(plan, tmp_path), "axolotl"), force=False)
    words = [str(TINY), str(folder / "config.json"), str(model)]
    made = run_in("axolotl", words, env={"HF_HUB_OFFLINE": "1"})
    assert made.returncode == 0, made.stderr[-2000:]
    shutil.copy(model / "texts" / "train.jsonl", folder / "texts.jsonl")
    losses = trained(folder, model)
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 0.2


def trained(folder: Path, model: Path) -> list[float]:
    """Losses of every step of check.sh."""
    binaries = python_of("axolotl").parent
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    own = {
        "PATH": f"{binaries}{os.pathsep}{clean['PATH']}",
        "MODEL": str(model),
        "LEARNING_RATE": "1e-4",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "AXOLOTL_DO_NOT_TRACK": "1",
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

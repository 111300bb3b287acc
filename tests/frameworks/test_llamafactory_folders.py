"""LLaMA-Factory's own parser takes what is emitted, and trains it on a CPU."""

import json
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
SCRIPTS = Path(__file__).parent / "llamafactory"
sys.path.insert(0, str(LAUNCH))

from accelerate_plans import drawn_plans, filed, jobs, plan_of  # noqa: E402  # beside
from golden_folders import ROOT  # noqa: E402
from target_gaps import llamafactory as gaps  # noqa: E402

from planner.frameworks.accelerate.llamafactory.known import FILE  # noqa: E402
from planner.launch import emit, write_folder  # noqa: E402
from planner.launch.read_plan import PlanFile  # noqa: E402
from planner.launch.targets.accelerate.placement import DS_FILE, zero  # noqa: E402
from planner.launch.targets.accelerate.plan import deepspeed  # noqa: E402
from planner.launch.targets.llamafactory.writer import arguments  # noqa: E402
from planner.specs.training import PROJECTED  # noqa: E402

pytestmark = pytest.mark.frameworks
COUNT, STEPS = 8, 8
TINY = SCRIPTS.parent / "accelerate" / "tiny.py"
Run = Callable[..., subprocess.CompletedProcess[str]]
WIDE = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}
VARIANTS = {
    "method": "lora",
    "lora": {
        "rank": 4,
        "precision": "fp32",
        "dora": True,
        "rslora": True,
        "loraplus_lr_ratio": 16.0,
    },
}
QLORA = {"method": "qlora", "lora": {"rank": 4, "precision": "fp32"}}
FLASH = {"attention": "flash_attention_2"}
TEXTS = {"lengths": {16: 0.5, 32: 0.5}}
GALORE = {"optimizer": "galore-adamw", "projection_rank": 8}
APOLLO = {"optimizer": "apollo-adamw", "projection_rank": 8}
HALF = {"name": "hf-bf16"}
SPECS: list[tuple[int, dict[str, Any], dict[str, Any]]] = [
    (1, {"recompute": "full"}, {"training": WIDE}),
    (1, {}, {"training": VARIANTS}),
    (1, {}, {"training": QLORA | {"quantization": "int8"}}),
    (1, {}, {"training": WIDE | TEXTS | {"padding": "packed"}, "stack": FLASH}),
    (1, {}, {"training": WIDE | TEXTS}),
    (2, {"zero_stage": 0}, {"stack": HALF}),
    (2, {"zero_stage": 0}, {"training": GALORE, "stack": HALF}),
    (1, {}, {"training": APOLLO, "stack": {"name": "hf-amp"}}),
    (2, {"zero_stage": 2}, {"stack": {"name": "hf-trainer"}}),
    (4, {"zero_stage": 3}, {"stack": {"name": "hf-trainer"}}),
]
"""GPUs, layout and blocks of a job that the golden folders have not."""


def answers(run_in: Run, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = run_in(
        "llamafactory",
        [str(SCRIPTS / "accepts.py")],
        stdin="\n".join(map(json.dumps, questions)),
        timeout=500,
        env={"HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": "cpu"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (x.partition("ANSWER ")[2] for x in done.stdout.splitlines())
    return [json.loads(line) for line in lines if line]


def asked(plan: PlanFile) -> dict[str, Any]:
    """A plan's files, as the parser reads them."""
    files = {"train.yaml": arguments(plan.brief)}
    return files | ({DS_FILE: zero(plan.brief)} if deepspeed(plan.brief) else {})


def wrong(case: str, **values: Any) -> dict[str, Any]:
    """A golden folder's YAML with other values."""
    folder = ROOT / "llamafactory" / case
    text = (folder / "train.yaml").read_text()
    zeros = folder / DS_FILE
    beside = {DS_FILE: json.loads(zeros.read_text())} if zeros.exists() else {}
    return {"train.yaml": yaml.safe_load(text) | values, **beside}


QUANTISED = "llama-3.1-8b-qlora-rtx-4090"
SHARDED = "llama-2-7b-zero3-offload-4-rtx-4090"
WRONG = {
    "quantised weights that train": wrong(QUANTISED, finetuning_type="full"),
    "a method without a name": wrong(QUANTISED, finetuning_type="prefix"),
    "another word": wrong(QUANTISED, micro_batch_size=1),
    "texts apart without answers": wrong(QUANTISED, neat_packing=True),
    "GaLore under DeepSpeed": wrong(SHARDED, use_galore=True),
    "16-bit weights at ZeRO 3": wrong(SHARDED, pure_bf16=True),
}


def test_every_plan_is_accepted_and_wrong_files_are_not(
    run_in: Run, tmp_path: Path
) -> None:
    """One process answers for all, since its imports are most of the time."""
    jobs_of = jobs("llamafactory")
    plans = [one for job in jobs_of for one in drawn_plans(job, COUNT, gaps=gaps)]
    plans += [filed(plan_of(n, its, **spec), tmp_path) for n, its, spec in SPECS]
    assert [gaps(plan.brief) for plan in plans] == [()] * len(plans)
    assert len(plans) > 12
    said = answers(run_in, [*map(asked, plans), *WRONG.values()])
    for plan, one in zip(plans, said, strict=False):
        assert one["accepted"], (one["why"], plan.path, plan.plan.layout)
        _is_as_planned(plan, one)
    bad = zip(WRONG, said[len(plans) :], strict=True)
    assert [what for what, one in bad if one["accepted"]] == []


def _is_as_planned(plan: PlanFile, one: dict[str, Any]) -> None:
    its, training = plan.plan.layout, plan.pricing.training
    assert one["micro_batch"] == its.micro_batch
    assert one["grad_accum"] == its.grad_accum
    assert one["length"] == training.seq_len
    assert one["packing"] is (training.rows != "longest")
    assert one["method"] == ("lora" if training.frozen else "full")
    assert not training.frozen or one["rank"] == training.lora.rank
    projects = training.optimizer in PROJECTED
    assert one["projects"] == ([training.projection_rank] if projects else [])
    assert one["bits"] == {"nf4": 4, "int8": 8}.get(training.weight_format or "")
    stage = (one["zero"] or {}).get("stage", 0)
    assert stage == its.zero_stage


def test_the_list_of_arguments_is_what_the_parser_has(run_in: Run) -> None:
    done = run_in("llamafactory", [str(SCRIPTS / "keys.py")], timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    found, listed = (
        json.loads(done.stdout.splitlines()[-1]),
        json.loads(FILE.read_text()),
    )
    assert f"v{found.pop('version')} " in listed.pop("source")
    assert found == listed


@pytest.mark.parametrize("training", [GALORE, APOLLO], ids=["galore", "apollo"])
def test_its_optimizer_keeps_the_states_that_are_priced(
    run_in: Run, training: dict[str, Any], tmp_path: Path
) -> None:
    plan = filed(plan_of(1, {}, training=training, stack=HALF), tmp_path)
    fields = {k: v for k, v in plan.brief.model.items() if k != "name"}
    question = {"train.yaml": arguments(plan.brief), "config.json": fields}
    env = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(SCRIPTS / "no_audio")}
    words, stdin = [str(SCRIPTS / "states.py")], json.dumps(question)
    done = run_in("llamafactory", words, stdin=stdin, timeout=500, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    (elements,) = re.findall(r"ANSWER (\d+)", done.stdout)
    held = plan.plan.estimate.memory.stages[0].optimizer * 2**30
    assert 2 * int(elements) == pytest.approx(held)


ON_CPU = (
    "use_cpu=true bf16=false flash_attn=disabled optim=adamw_torch "
    f"learning_rate=0.01 max_steps={STEPS} infer_dtype=float32"
)


def test_llamafactory_trains_an_emitted_folder(run_in: Run, tmp_path: Path) -> None:
    """The command that is emitted starts LLaMA-Factory's trainer; losses fall."""
    layout = {"micro_batch": 4, "recompute": "full"}
    plan = plan_of(1, layout, training=WIDE)
    folder, model = tmp_path / "out", tmp_path / "model"
    write_folder(folder, emit(filed(plan, tmp_path), "llamafactory"), force=False)
    words = [str(TINY), str(folder / "config.json"), str(model)]
    made = run_in("llamafactory", words, env={"HF_HUB_OFFLINE": "1"})
    assert made.returncode == 0, made.stderr[-2000:]
    texts = {"file_name": "train.jsonl", "columns": {"prompt": "text"}}
    (model / "texts" / "dataset_info.json").write_text(json.dumps({"tiny": texts}))
    losses = trained(folder, model)
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 0.2


def trained(folder: Path, model: Path) -> list[float]:
    """Losses of every step of check.sh."""
    binaries = python_of("llamafactory").parent
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    own = {
        "PATH": f"{binaries}{os.pathsep}{clean['PATH']}",
        "MODEL": str(model),
        "LEARNING_RATE": "1e-4",
        "DATASET_DIR": str(model / "texts"),
        "DATASET": "tiny",
        "PYTHONPATH": str(SCRIPTS / "no_audio"),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "CHECKPOINTS": str(folder / "checkpoints"),
    }
    done = subprocess.run(
        ["bash", "check.sh", *ON_CPU.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={**clean, **own},
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return [float(x) for x in re.findall(r"'loss': '?([\d.]+)", done.stdout)]

"""torchtune's own parser takes what is emitted, and a recipe trains it on a CPU."""

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
SCRIPTS = Path(__file__).parent / "torchtune"
sys.path.insert(0, str(LAUNCH))

from accelerate_plans import MODEL, drawn_plans, filed, jobs, plan_of  # noqa: E402
from golden_folders import ROOT  # noqa: E402
from target_gaps import torchtune as gaps  # noqa: E402

from planner.launch import emit, write_folder  # noqa: E402
from planner.launch.read_plan import PlanFile  # noqa: E402
from planner.launch.targets.torchtune.writer import arguments  # noqa: E402

pytestmark = pytest.mark.frameworks
COUNT, STEPS = 6, 8
Run = Callable[..., subprocess.CompletedProcess[str]]
PURE = {"name": "hf-bf16"}
LORA = {"method": "lora", "lora": {"rank": 4, "targets": "all-linear"}}
QLORA = {"method": "qlora", "lora": {"rank": 4, "targets": ["q_proj", "v_proj"]}}
TIED = {"tie_word_embeddings": True, "model_type": "qwen2"}
MISTRAL = {"model_type": "mistral", "sliding_window": None}
SCALED = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
SPECS: list[tuple[int, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (1, {"recompute": "full"}, {"training": LORA}, {}),
    (1, {}, {"training": QLORA}, {}),
    (1, {}, {"training": {"optimizer": "sgd-momentum"}}, {"rope_theta": 5e5}),
    (2, {"zero_stage": 3}, {}, TIED),
    (1, {}, {"training": LORA}, {"rope_scaling": SCALED}),
    (1, {}, {}, {"rope_scaling": SCALED, "tie_word_embeddings": True}),
    (
        4,
        {"zero_stage": 2, "recompute": "full"},
        {},
        {"model_type": "mistral", "sliding_window": None},
    ),
]
"""GPUs, layout, blocks of a job and fields of a model that no golden folder has."""


def plans_of(tmp_path: Path) -> list[PlanFile]:
    """Plans of the golden folders' jobs and of SPECS."""
    jobs_of = jobs("torchtune")
    plans = [one for job in jobs_of for one in drawn_plans(job, COUNT, gaps=gaps)]
    for gpus, layout, spec, fields in SPECS:
        plan = plan_of(gpus, layout, stack=PURE, **spec)
        other = plan.spec | {"model": plan.spec["model"] | fields}
        plans.append(filed(plan.model_copy(update={"spec": other}), tmp_path))
    assert not [gap for plan in plans for gap in gaps(plan.brief)]
    return plans


def answers(run_in: Run, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    asked = "\n".join(json.dumps({"train.yaml": its}) for its in questions)
    script = str(SCRIPTS / "accepts.py")
    done = run_in("torchtune", [script], stdin=asked, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (x.partition("ANSWER ")[2] for x in done.stdout.splitlines())
    return [json.loads(line) for line in lines if line]


def wrong(block: str, **values: Any) -> dict[str, Any]:
    """A golden folder's YAML with other values in a block."""
    case = "llama-3.1-8b-qlora-rtx-4090"
    text = (ROOT / "torchtune" / case / "train.yaml").read_text()
    its: dict[str, Any] = yaml.safe_load(text)
    return its | {block: its[block] | values}


WRONG = {
    "an argument of the model": wrong("model", rank=8),
    "a builder": wrong("model", _component_="torchtune.models.llama3_1.llama4"),
    "an argument of the loss": wrong("loss", chunks=8),
    "an optimizer": wrong("optimizer", _component_="torch.optim.AdamX"),
}


def test_every_plan_is_accepted_and_wrong_files_are_not(
    run_in: Run, tmp_path: Path
) -> None:
    """One process answers for all; torchtune builds as many parameters as planned."""
    plans = plans_of(tmp_path)
    said = answers(run_in, [*(arguments(one.brief) for one in plans), *WRONG.values()])
    for plan, one in zip(plans, said, strict=False):
        assert one["accepted"], (one["why"], plan.path, plan.plan.layout)
        _is_as_planned(plan, one)
    bad = zip(WRONG, said[len(plans) :], strict=True)
    assert [what for what, one in bad if one["accepted"]] == []


def _is_as_planned(plan: PlanFile, one: dict[str, Any]) -> None:
    model, training = plan.brief.architecture, plan.pricing.training
    assert bool(one["trained"]) is training.frozen
    if not training.frozen:
        assert one["layers"] == model.layers
        assert one["parameters"] == model.parameters


ON_CPU = (
    "device=cpu",
    "dtype=fp32",
    "optimizer.lr=0.02",
    "optimizer.fused=False",
    "lr_scheduler.num_warmup_steps=1",
    "tokenizer._component_=words.Words",
    f"max_steps_per_epoch={STEPS}",
)


def test_a_recipe_trains_an_emitted_folder(run_in: Run, tmp_path: Path) -> None:
    """The command that is emitted starts the recipe; losses fall."""
    layout = {"micro_batch": 4, "recompute": "full"}
    plan = plan_of(1, layout, training=LORA, stack=PURE)
    folder, model = tmp_path / "out", tmp_path / "model"
    write_folder(folder, emit(filed(plan, tmp_path), "torchtune"), force=False)
    fields = tmp_path / "fields.json"
    fields.write_text(json.dumps(MODEL))
    made = run_in("torchtune", [str(SCRIPTS / "words.py"), str(fields), str(model)])
    assert made.returncode == 0, made.stderr[-2000:]
    losses = trained(folder, model)
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 0.2


def trained(folder: Path, model: Path) -> list[float]:
    """Losses of every step of check.sh."""
    binaries = python_of("torchtune").parent
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    own = {
        "PATH": f"{binaries}{os.pathsep}{clean['PATH']}",
        "PYTHONPATH": str(SCRIPTS),
        "MODEL": str(model),
        "LEARNING_RATE": "1e-4",
        "SHARDS": "00001",
        "DATASET": str(model / "texts.jsonl"),
        "OMP_NUM_THREADS": "1",
        "CHECKPOINTS": str(folder / "checkpoints"),
    }
    done = subprocess.run(
        ["bash", "check.sh", *ON_CPU],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**clean, **own},
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return [float(x) for x in re.findall(r"Step \d+ \| loss:([\d.]+)", done.stdout)]

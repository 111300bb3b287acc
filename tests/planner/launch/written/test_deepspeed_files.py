"""What is written for DeepSpeed says the whole plan, and is read back as it was."""

import json
from pathlib import Path
from typing import Any

import pytest
from deepspeed_plans import CLUSTERS, LAYOUTS, MODEL, drawn_plans, plan_file
from golden_folders import ROOT
from many_plans import jobs
from target_gaps import deepspeed as gaps
from typer.testing import CliRunner

from planner.cli.app import app
from planner.errors import BadInputError
from planner.frameworks.deepspeed.launch.known import unknown
from planner.job.resolve import resolve
from planner.launch import PlanFile, emit
from planner.launch.importing import UserOverrides, import_spec
from planner.launch.targets.deepspeed.reader import read, reads
from planner.launch.targets.deepspeed.writer import configuration
from planner.planning.prediction.predict import complete, predict
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

RUNNER = CliRunner()
DRAWN = 24
OURS = ("plan.json", "README.md")


def texts_of(found: PlanFile) -> dict[str, str]:
    return {f.name: f.text for f in emit(found, "deepspeed") if f.name not in OURS}


def texts(name: str, folder: Path, **training: Any) -> dict[str, str]:
    return texts_of(plan_file(name, folder, **training))


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    """Layout, training block and predicted step are those of the plan."""
    found = plan_file(name, tmp_path)
    files = texts_of(found)
    assert reads(files)
    reading = read(files)
    assert reading.unknown == ()
    fields = import_spec(reading, UserOverrides(cluster=CLUSTERS[LAYOUTS[name][0]]), ())
    spec = JobSpec.model_validate(fields)
    (workload,) = resolve(spec, file=name, base=tmp_path)
    assert workload.training == found.pricing.training
    priced = predict(workload, spec.layout)
    assert priced.layout == found.plan.layout
    mine, its = found.plan.estimate.step_time_s, priced.estimate.step_time_s
    assert its.value == pytest.approx(mine.value)


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (at > 0))
        for at, path in enumerate(jobs("deepspeed"))
    ],
    ids=lambda path: path.name,
)
def test_drawn_layouts_are_read_back(folder: Path) -> None:
    every = [plan for plan in drawn_plans(folder, DRAWN) if not gaps(plan.brief)]
    assert len(every) > DRAWN // 2
    for plan in every:
        reading = read(texts_of(plan))
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        assert complete(plan.pricing, partial) == plan.plan.layout
        assert (reading.unknown, reading.gpus) == ((), plan.plan.layout.gpus)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_key_is_one_that_deepspeed_reads(name: str, tmp_path: Path) -> None:
    its = configuration(plan_file(name, tmp_path).brief)
    assert list(unknown(its)) == []
    # Under AutoTP DeepSpeed counts tensor ranks as replicas.
    assert ("train_batch_size" in its) == (LAYOUTS[name][2].get("tp", 1) == 1)


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ("", "gradient_cliping"),
        ("", "eigenvalue"),
        ("zero_optimization", "overlap_com"),
        ("pipeline", "activation_checkpoint_intervl"),
        ("activation_checkpointing", "cpu_checkpontng"),
        ("expert_parallel", "autoep_sz"),
        ("tensor_parallel", "autotp_sz"),
    ],
)
def test_a_key_that_deepspeed_does_not_know_is_named(block: str, key: str) -> None:
    """Its own parser lets five of these seven pass without a word."""
    its: dict[str, Any] = {"train_micro_batch_size_per_gpu": 1}
    (its.setdefault(block, {}) if block else its)[key] = True
    (told,) = read({"ds.json": json.dumps(its)}).unknown
    assert told.name == (f"{block}.{key}" if block else key)


GAPS = {
    "adapters": ({"method": "lora"}, "spec.training.method"),
    "narrow moments": ({"state_bits": 8}, "spec.training.state_bits"),
    "an optimizer of bitsandbytes": ({"optimizer": "lion"}, "spec.training.optimizer"),
    "documents": ({"document": 16}, "spec.training.document"),
    "frozen parts": ({"freeze": {"layers": 1}}, "spec.training.freeze"),
}


@pytest.mark.parametrize("what", GAPS)
def test_what_the_script_cannot_do_is_a_gap(what: str, tmp_path: Path) -> None:
    training, field = GAPS[what]
    found = gaps(plan_file("zero 2", tmp_path, **training).brief)
    assert [gap.field for gap in found] == [field]
    assert gaps(plan_file("zero 2", tmp_path).brief) == ()


def test_blocks_of_other_models_are_not_put_into_stages(tmp_path: Path) -> None:
    brief = plan_file("pipeline", tmp_path).brief
    other = type(brief)(**{**vars(brief), "model": brief.model | {"model_type": "opt"}})
    assert [gap.field for gap in gaps(other)] == ["layout.pp"]


@pytest.mark.slow
def test_a_plan_of_tp_pp_and_cp_is_refused_with_its_reasons(tmp_path: Path) -> None:
    """Exit 5, as the page has it: each pair with its line, and the nearest plan."""
    plan = ROOT / "megatron" / "llama-3.1-70b-32-h100" / "plan.json"
    out = tmp_path / "out"
    words = ["emit", str(plan), "--target", "deepspeed", "--out", str(out)]
    result = RUNNER.invoke(app, words)
    text = " ".join(result.output.split())
    assert result.exit_code == 5, text
    assert not out.exists()
    for pair in ("pp 4 with tp 4", "pp 4 with cp 2", "tp 4 with cp 2"):
        assert pair in text
    assert "nearest plan that DeepSpeed can express" in text
    page = (ROOT.parents[2] / "docs/guides/launch.md").read_text()
    shown = page.split("$ planner emit plan.json --target deepspeed --out run\n")[1]
    said = result.output.replace(str(plan), "plan.json")
    assert shown.split("```")[0].strip() == said.strip()


TRAINER = {
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 8,
    "bf16": True,
    "gradient_checkpointing": True,
    "deepspeed": "ds.json",
    "optim": "adamw_torch",
    "max_length": 2048,
    "output_dir": "out",
}
AUTO = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {
        "stage": 3,
        "overlap_comm": True,
        "stage3_prefetch_bucket_size": "auto",
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
    },
}


def test_auto_is_what_trainer_says() -> None:
    files = {"ds.json": json.dumps(AUTO), "args.json": json.dumps(TRAINER)}
    reading = read(files)
    assert reading.unknown == ()
    assert dict(reading.layout) == {
        "tp": 1,
        "pp": 1,
        "cp": 1,
        "zero_stage": 3,
        "micro_batch": 4,
        "grad_accum": 8,
        "offload": {"optimizer": 1.0, "device": "cpu"},
        "recompute": "full",
    }
    its = {"precision": "bf16", "seq_len": 2048, "optimizer": "adamw"}
    assert dict(reading.training) == its


def test_auto_that_nobody_says_is_reported_not_guessed() -> None:
    reading = read({"ds.json": json.dumps(AUTO)})
    assert "micro_batch" not in reading.layout
    assert any(
        word.setting == "train_micro_batch_size_per_gpu auto"
        for word in reading.unknown
    )


@pytest.mark.parametrize("stage", ["three", 4, None, -1, 2.5, float("inf")])
def test_a_wrong_value_is_named(stage: object) -> None:
    its = {"zero_optimization": {"stage": stage}}
    with pytest.raises(BadInputError, match="is refused by DeepSpeed") as refused:
        read({"ds.json": json.dumps(its)})
    assert refused.value.field == "zero_optimization.stage"


@pytest.mark.parametrize("ratio", ["half", 0, 1.5])
def test_a_wrong_share_is_named(ratio: object) -> None:
    block = {"device": "cpu", "ratio": ratio}
    its = {"zero_optimization": {"stage": 3, "offload_optimizer": block}}
    with pytest.raises(BadInputError, match=r"no share|refused") as refused:
        read({"ds.json": json.dumps(its)})
    assert refused.value.field == "zero_optimization.offload_optimizer.ratio"


def test_a_wrong_partition_is_named() -> None:
    its = {"train_batch_size": 8, "pipeline": {"stages": 2, "partition": [3, "b"]}}
    with pytest.raises(BadInputError, match="no whole number"):
        read({"ds.json": json.dumps(its)})


def test_activations_on_the_host_are_reported() -> None:
    """The room does not price them, so that no layout may silently leave them out."""
    its = {
        "zero_optimization": {"stage": 2},
        "activation_checkpointing": {"cpu_checkpointing": True},
    }
    (told,) = read({"ds.json": json.dumps(its)}).unknown
    assert told.name == "activation_checkpointing.cpu_checkpointing"


def test_a_model_that_lies_beside_it_is_taken() -> None:
    fields = {k: v for k, v in MODEL.items() if k != "name"}
    files = {
        "ds.json": json.dumps({"zero_optimization": {"stage": 1}}),
        "config.json": json.dumps(fields),
    }
    assert read(files).model == {"name": "imported", **fields}


def test_a_layout_that_stays_open_is_filled_in(tmp_path: Path) -> None:
    """A public file gives no pipeline and no degree: the rest is data parallel."""
    del tmp_path
    reading = read({"ds.json": json.dumps({"train_micro_batch_size_per_gpu": 1})})
    layout = PartialLayout.model_validate(reading.layout)
    assert (layout.tp, layout.pp, layout.dp) == (1, 1, None)

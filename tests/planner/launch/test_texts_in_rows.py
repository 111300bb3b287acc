"""Filling of rows: written as each tool names it, read back, else refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate_plans import filed, plan_of

from planner import validate
from planner.calibration.accuracy.logged_job import planned_row, planned_text
from planner.calibration.rows.logs import Log
from planner.errors import UnsupportedPlanError
from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.importing import read_texts
from planner.launch.targets.accelerate.trainer import by_trl

LENGTHS = {8: 0.5, 32: 0.5}
WIDE = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}
NARROW = {"method": "lora", "lora": {"rank": 4}}
CHUNKED = {"loss": "chunked"}
LOOSE, WHOLE = {"packing": False}, {"packing": False, "pad_to_multiple_of": 32}
APART = {"packing": True, "packing_strategy": "bfd"}
PACKED_AXOLOTL = {"sample_packing": True, "pad_to_sequence_len": True}
LOOSE_AXOLOTL = {"sample_packing": False, "pad_to_sequence_len": False}
WHOLE_AXOLOTL = {"sample_packing": False, "pad_to_sequence_len": True}
NEAT = {"stage": "sft", "packing": True, "neat_packing": True}
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "accelerate": (NARROW, {}, "training.yaml"),
    "trl": (WIDE, CHUNKED, "train.yaml"),
    "axolotl": (NARROW, {}, "train.yaml"),
    "llamafactory": (WIDE, {}, "train.yaml"),
    "torchtune": ({}, {"name": "hf-bf16"}, "train.yaml"),
}
"""Training and stack that a target writes, and the file that fills rows."""


def plan(target: str, padding: str, where: Path) -> Any:
    training, stack, _ = SETTINGS[target]
    texts = {"lengths": LENGTHS, "padding": padding}
    if padding == "packed" and target != "torchtune":
        stack = {**stack, "attention": "flash_attention_2"}
    return filed(plan_of(1, {}, training=training | texts, stack=stack), where)


@pytest.mark.parametrize(
    ("target", "padding", "told"),
    [
        ("accelerate", "longest", LOOSE),
        ("accelerate", "max", WHOLE),
        ("accelerate", "packed", APART),
        ("trl", "longest", LOOSE),
        ("trl", "max", WHOLE),
        ("trl", "packed", APART),
        ("axolotl", "longest", LOOSE_AXOLOTL),
        ("axolotl", "max", WHOLE_AXOLOTL),
        ("axolotl", "packed", PACKED_AXOLOTL),
        ("llamafactory", "longest", {"stage": "pt", "packing": False}),
        ("llamafactory", "packed", NEAT),
        ("torchtune", "longest", {"packed": False}),
        ("torchtune", "packed", {"packed": True}),
    ],
)
def test_rows_are_written_in_the_words_of_the_tool_and_read_back(
    target: str, padding: str, told: dict[str, Any], tmp_path: Path
) -> None:
    every = {
        file.name: file.text for file in emit(plan(target, padding, tmp_path), target)
    }
    given = yaml.safe_load(every[SETTINGS[target][2]])
    given = given.get("dataset", given) if target == "torchtune" else given
    assert {name: given.get(name) for name in told} == told
    files = {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}
    reading = read_texts(files, None, "the folder")
    assert reading.training["padding"] == padding
    assert reading.unknown == ()
    assert "as priced" in every[README] or target == "accelerate"


@pytest.mark.parametrize(
    ("target", "padding"), [("llamafactory", "max"), ("torchtune", "max")]
)
def test_rows_that_a_tool_does_not_make_are_refused_by_name(
    target: str, padding: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedPlanError) as refused:
        emit(plan(target, padding, tmp_path), target)
    told = str(refused.value)
    assert "spec.training.padding = max" in told
    assert "it has longest, packed" in told


def test_texts_of_a_full_training_are_filled_in_by_the_trainer_of_trl(
    tmp_path: Path,
) -> None:
    texts = {"lengths": LENGTHS, "padding": "longest"}
    found = filed(plan_of(2, {"zero_stage": 2}, training=texts), tmp_path)
    every = {file.name: file.text for file in emit(found, "accelerate")}
    assert yaml.safe_load(every["run.yaml"])["trainer"] == "trl"
    assert yaml.safe_load(every["run.yaml"])["loss"] == "model"
    assert yaml.safe_load(every["training.yaml"])["packing"] is False


def test_packed_texts_need_attention_that_keeps_them_apart(tmp_path: Path) -> None:
    texts = {"lengths": LENGTHS, "padding": "packed"}
    stack = {"attention": "sdpa"}
    found = filed(plan_of(1, {}, training=NARROW | texts, stack=stack), tmp_path)
    for target in ("accelerate", "axolotl", "llamafactory"):
        with pytest.raises(UnsupportedPlanError, match="kept apart by flash_attention"):
            emit(found, target)


@pytest.mark.parametrize("framework", ["megatron", "torchtitan", "deepspeed"])
@pytest.mark.parametrize("padding", ["longest", "packed"])
def test_frameworks_that_read_whole_rows_refuse_texts(
    framework: str, padding: str, tmp_path: Path
) -> None:
    texts = {"lengths": LENGTHS, "padding": padding}
    found = filed(plan_of(8, {}, training=texts, framework=framework), tmp_path)
    with pytest.raises(UnsupportedPlanError, match=r"training\.padding"):
        emit(found, framework)


def test_what_arguments_of_trl_say_of_rows() -> None:
    assert by_trl({}, 32) == {}
    assert by_trl({"packing": True}, 32) == {"padding": "packed"}
    assert by_trl({"packing": True, "packing_strategy": "wrapped"}, 32) == {}
    assert by_trl({"packing": False}, 32) == {"padding": "longest"}
    whole = {"packing": "false", "pad_to_multiple_of": "32"}
    assert by_trl(whole, 32) == {"padding": "max"}


def test_a_measured_run_is_validated_against_what_was_predicted(tmp_path: Path) -> None:
    found = plan("trl", "longest", tmp_path)
    layout, told = found.plan.layout, found.plan.estimate.step_time_s
    log = Log("trl", 9, step_s=1.0)
    block = planned_row("mine", found.plan.spec, found.pricing, layout, log)
    path = tmp_path / "mine.yaml"
    path.write_text(planned_text(block))
    (outcome,) = validate([path]).rows
    assert outcome.predicted.step_time_s == pytest.approx(told.value)

"""rsLoRA, DoRA and LoRA+: written where a program has them, read back, else refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate_plans import filed, plan_of

from planner.errors import BadInputError, UnsupportedPlanError
from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.importing import read_texts

WIDE = {"rank": 4, "precision": "fp32"}
NARROW = {"rank": 4}
CHUNKED = {"loss": "chunked"}
PURE = {"name": "hf-bf16"}
TARGETS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "accelerate": (NARROW, {}, "run.yaml", ""),
    "trl": (WIDE, CHUNKED, "train.yaml", ""),
    "axolotl": (NARROW, {}, "train.yaml", "peft_"),
    "llamafactory": (WIDE, {}, "train.yaml", ""),
}
"""Adapters and stack that a target writes; file and prefix of the variants."""


def spec(lora: dict[str, Any], stack: dict[str, Any]) -> dict[str, Any]:
    return {"training": {"method": "lora", "lora": lora}, "stack": stack}


def written(target: str, lora: dict[str, Any], where: Path) -> dict[str, str]:
    base, stack, *_ = TARGETS[target]
    found = filed(plan_of(1, {}, **spec(base | lora, stack)), where)
    every = {file.name: file.text for file in emit(found, target)}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


@pytest.mark.parametrize("target", TARGETS)
def test_variants_are_written_as_peft_names_them_and_read_back(
    target: str, tmp_path: Path
) -> None:
    files = written(target, {"rslora": True, "dora": True}, tmp_path)
    _, _, name, prefix = TARGETS[target]
    given = yaml.safe_load(files[name])
    given = given.get("adapters", given)
    assert given[f"{prefix}use_rslora"] is given[f"{prefix}use_dora"] is True
    reading = read_texts(files, None, "the folder")
    lora: Any = reading.training["lora"]
    assert lora["rslora"] is lora["dora"] is True
    assert reading.unknown == ()


@pytest.mark.parametrize("target", TARGETS)
def test_plain_adapters_say_nothing_of_variants(target: str, tmp_path: Path) -> None:
    files = written(target, {}, tmp_path)
    assert not any(
        word in text
        for text in files.values()
        for word in ("dora", "rslora", "plus_lr")
    )


@pytest.mark.parametrize("target", ["axolotl", "llamafactory"])
def test_rates_of_both_factors_are_written_and_read_back(
    target: str, tmp_path: Path
) -> None:
    files = written(target, {"loraplus_lr_ratio": 16.0}, tmp_path)
    assert yaml.safe_load(files["train.yaml"])["loraplus_lr_ratio"] == 16.0
    reading = read_texts(files, None, "the folder")
    lora: Any = reading.training["lora"]
    assert lora["loraplus_lr_ratio"] == 16.0
    assert reading.unknown == ()


@pytest.mark.parametrize("target", ["axolotl", "llamafactory"])
@pytest.mark.parametrize("value", ["many", "0", "-1", ".inf"])
def test_rates_that_cannot_be_are_refused_with_file_and_field(
    target: str, value: str, tmp_path: Path
) -> None:
    files = written(target, {}, tmp_path)
    files["train.yaml"] += f"loraplus_lr_ratio: {value}\n"
    with pytest.raises(BadInputError, match=r"train\.yaml:\d+: loraplus_lr_ratio"):
        read_texts(files, None, "the folder")


@pytest.mark.parametrize("target", ["accelerate", "trl"])
def test_rates_are_refused_where_no_argument_has_them(
    target: str, tmp_path: Path
) -> None:
    base, stack, *_ = TARGETS[target]
    lora = base | {"loraplus_lr_ratio": 16.0}
    found = filed(plan_of(1, {}, **spec(lora, stack)), tmp_path)
    with pytest.raises(UnsupportedPlanError, match="axolotl and llamafactory") as told:
        emit(found, target)
    assert len(str(told.value).splitlines()) == 2


@pytest.mark.parametrize(
    "lora", [{"rslora": True}, {"dora": True}, {"loraplus_lr_ratio": 16.0}]
)
def test_torchtune_refuses_variants_each_by_its_field(
    lora: dict[str, Any], tmp_path: Path
) -> None:
    (field,) = lora
    found = filed(plan_of(1, {}, **spec(NARROW | lora, PURE)), tmp_path)
    with pytest.raises(UnsupportedPlanError, match=rf"lora\.{field}") as told:
        emit(found, "torchtune")
    assert len(str(told.value).splitlines()) == 2


@pytest.mark.parametrize("target", ["axolotl", "llamafactory"])
def test_an_optimizer_on_the_host_has_one_rate(target: str, tmp_path: Path) -> None:
    layout = {"zero_stage": 2, "offload": {"optimizer": 1.0}}
    lora, stack = NARROW | {"loraplus_lr_ratio": 16.0}, {"name": "hf-trainer"}
    found = filed(plan_of(2, layout, **spec(lora, stack)), tmp_path)
    with pytest.raises(UnsupportedPlanError, match="host has one learning rate"):
        emit(found, target)


def test_a_ratio_that_is_none_is_refused_with_its_field() -> None:
    with pytest.raises(ValueError, match="loraplus_lr_ratio"):
        plan_of(1, {}, **spec({"loraplus_lr_ratio": 0}, {}))

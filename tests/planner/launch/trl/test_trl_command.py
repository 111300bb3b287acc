"""A command of TRL's without a YAML is TRL's, with TRL's defaults and presets."""

from typing import Any

import pytest

from planner.errors import BadInputError
from planner.launch.brief import Reading
from planner.launch.importing import read_texts
from planner.launch.targets.trl.presets import presets

WORDS = "--model_name_or_path meta-llama/Llama-3.1-8B --dataset_name x"
LORA = f"{WORDS} --dtype bfloat16 --use_peft --lora_r 32"


def read(command: str, **files: str) -> Reading:
    return read_texts({"go.sh": f"{command}\n", **files}, None, "the files")


@pytest.mark.parametrize(
    "start",
    ["trl sft", "accelerate launch trl/scripts/sft.py", "python -m trl.scripts.sft"],
)
def test_defaults_are_those_of_trl(start: str) -> None:
    found = read(f"{start} {LORA} --per_device_train_batch_size 2")
    assert (found.target, found.unknown) == ("trl", ())
    assert found.training["precision"] == "bf16"
    assert found.training["seq_len"] == 1024
    assert found.training["lora"]["targets"] == ["q_proj", "v_proj"]
    assert found.training["lora"]["rank"] == 32
    assert found.layout["recompute"] == "full"
    assert found.layout["micro_batch"] == 2


@pytest.mark.parametrize("script", ["sft.py", "examples/scripts/sft.py", "dpo.py"])
def test_scripts_of_trl_need_no_adapters(script: str) -> None:
    """TRL's defaults hold without options of PEFT, too: rows of 1,024 tokens."""
    found = read(f"accelerate launch {script} {WORDS} --per_device_train_batch_size 2")
    assert (found.target, found.unknown) == ("trl", ())
    assert found.training["seq_len"] == 1024
    assert ("reference" in found.training) == (script == "dpo.py")


def test_several_targets_are_several() -> None:
    found = read(f"trl sft {LORA} --lora_target_modules q_proj k_proj v_proj")
    assert found.training["lora"]["targets"] == ["q_proj", "k_proj", "v_proj"]


def test_pairs_and_other_methods_are_by_the_word() -> None:
    found = read(f"trl dpo {LORA} --per_device_train_batch_size 2")
    assert found.training["reference"] == "adapters"
    assert found.layout["micro_batch"] == 4
    with pytest.raises(BadInputError, match="GRPO"):
        read(f"trl grpo {LORA}")


def test_an_option_that_trl_has_not_is_told() -> None:
    (told,) = read(f"trl sft {LORA} --max_seq_lenght 99").unknown
    assert told.name == "max_seq_lenght"


@pytest.mark.parametrize(
    ("name", "stage", "ranks"),
    [
        ("zero1", 1, 8),
        ("zero2", 2, 8),
        ("zero3", 3, 8),
        ("fsdp1", 3, 8),
        ("fsdp2", 3, 8),
        ("multi_gpu", 0, 8),
        ("single_gpu", 0, 1),
    ],
)
def test_presets_are_read_by_name(name: str, stage: int, ranks: int) -> None:
    assert len(presets()) == 7
    command = read(f"trl sft {WORDS} --accelerate_config {name}")
    text = f"model_name_or_path: x\ndataset_name: x\naccelerate_config: {name}\n"
    file = read_texts({"t.yaml": text}, None, "the file")
    for found in (command, file):
        assert found.unknown == ()
        assert (found.layout["zero_stage"], found.gpus) == (stage, ranks)


def test_ranks_of_the_command_win_over_the_preset() -> None:
    found = read(f"trl sft {WORDS} --accelerate_config zero3 --num_processes 4")
    assert (found.gpus, found.layout["zero_stage"]) == (4, 3)


def test_a_file_that_is_none_of_the_presets_is_told() -> None:
    told: Any = read(f"trl sft {WORDS} --accelerate_config zero9").unknown
    assert [each.name for each in told] == ["accelerate_config"]

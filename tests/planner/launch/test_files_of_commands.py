"""A script alone is read with the files of settings that its command names."""

from pathlib import Path

import pytest

from planner.errors import BadInputError
from planner.launch.importing import read_launch

AXOLOTL = """base_model: mistralai/Mistral-7B-v0.1
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 4
"""
TRL = """model_name_or_path: Qwen/Qwen2.5-7B
dtype: bfloat16
dataset_name: trl-lib/Capybara
max_length: 2048
per_device_train_batch_size: 2
"""
ZERO = """distributed_type: DEEPSPEED
deepspeed_config: {zero_stage: 3}
mixed_precision: bf16
num_processes: 8
"""
RUNS = {
    "axolotl train a.yml": {"a.yml": AXOLOTL},
    "accelerate launch -m axolotl.cli.train a.yml": {"a.yml": AXOLOTL},
    "trl sft --config t.yaml": {"t.yaml": TRL},
    "accelerate launch --config_file z.yaml sft.py --config=t.yaml": {
        "z.yaml": ZERO,
        "t.yaml": TRL,
    },
}


@pytest.mark.parametrize("command", RUNS)
@pytest.mark.parametrize("inside", ["", "configs/"])
def test_a_script_alone_reads_as_with_its_files(
    command: str, inside: str, tmp_path: Path
) -> None:
    files = RUNS[command]
    for name, text in files.items():
        command = command.replace(name, inside + name)
        path = tmp_path / inside / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/bash\n{command}\n")
    both = [script, *(tmp_path / inside / name for name in files)]
    assert read_launch([script], None) == read_launch(both, None)


def test_data_that_a_command_names_is_not_read(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("trl sft --config t.yaml --dataset_name big.json\n")
    (tmp_path / "t.yaml").write_text(TRL)
    (tmp_path / "big.json").write_text("[" + "1, " * 500_000 + "1]")
    assert read_launch([script], None).target == "trl"


def test_a_file_that_is_not_there_leaves_the_run_unknown(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("axolotl train a.yml\n")
    with pytest.raises(BadInputError, match="none of the known targets"):
        read_launch([script], None)


FSDP = """distributed_type: FSDP
mixed_precision: bf16
num_processes: 8
fsdp_config: {fsdp_version: 1, fsdp_sharding_strategy: FULL_SHARD}
"""
LLAMAFACTORY = """model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: sft
finetuning_type: full
template: llama3
cutoff_len: 2048
bf16: true
"""


def test_accelerates_file_shards_a_run_of_llamafactory(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(FSDP)
    (tmp_path / "l.yaml").write_text(LLAMAFACTORY)
    script = tmp_path / "run.sh"
    script.write_text("accelerate launch --config_file f.yaml src/train.py l.yaml\n")
    reading = read_launch([script], None)
    assert (reading.target, reading.layout["zero_stage"]) == ("llamafactory", 3)


@pytest.mark.parametrize(
    "command",
    [
        "accelerate launch --config_file f.yaml t.py",
        "trl sft --accelerate_config zero3",
    ],
)
def test_a_file_of_accelerate_that_is_not_there_is_told(
    command: str, tmp_path: Path
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{command} --per_device_train_batch_size 2 --bf16 true\n")
    said = [each.name for each in read_launch([script], "accelerate").unknown]
    assert said == [command.split()[2].removeprefix("--")]


@pytest.mark.parametrize("option", ["--mixed_precision bf16", "--mixed_precision=bf16"])
def test_a_launchers_last_option_leaves_the_program_its_name(
    option: str, tmp_path: Path
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(
        f"accelerate launch {option} train.py --per_device_train_batch_size 2\n"
    )
    assert read_launch([script], "accelerate").training["precision"] == "bf16"

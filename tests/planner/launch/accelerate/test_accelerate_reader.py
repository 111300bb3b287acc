"""Files of others are understood as far as they go, and the rest is named."""

from typing import Any

import pytest
import yaml

from planner.errors import BadInputError
from planner.launch.brief import Reading
from planner.launch.targets.accelerate.reader import read, reads

FSDP1 = """
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_offload_params: true
  fsdp_backward_prefetch: BACKWARD_PRE
"""
ZERO = """
distributed_type: DEEPSPEED
num_processes: 8
deepspeed_config:
  zero_stage: 2
  offload_optimizer_device: cpu
  gradient_accumulation_steps: 4
"""


def reading(**files: str) -> Reading:
    return read({name.replace("_", "."): text for name, text in files.items()})


def test_strategies_of_the_first_fsdp_are_zero_stages() -> None:
    found = reading(a_yaml=FSDP1)
    assert found.layout["zero_stage"] == 2
    assert found.layout["offload"]["parameters"] == 1.0
    assert found.gpus == 16
    assert found.training == {"precision": "bf16"}


def test_a_plugin_of_deepspeed_is_its_stack() -> None:
    found = reading(a_yaml=ZERO, t_yaml="per_device_train_batch_size: 2\nbf16: true")
    assert found.stack == {"name": "hf-trainer"}
    assert found.layout["zero_stage"] == 2
    assert found.layout["offload"] == {"optimizer": 1.0, "device": "cpu"}
    assert (found.layout["micro_batch"], found.layout["grad_accum"]) == (2, 4)
    assert found.training["global_batch"] == 64
    assert found.training["precision"] == "bf16"


def test_a_file_of_deepspeed_that_is_absent_is_named() -> None:
    text = (
        "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: x.json}"
    )
    assert any("x.json" in str(word) for word in reading(a_yaml=text).unknown)


def test_auto_is_what_the_trainer_says() -> None:
    zero = (
        '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}}'
    )
    found = reading(a_yaml=ZERO, d_json=zero, t_yaml="per_device_train_batch_size: 3")
    assert (found.layout["micro_batch"], found.layout["zero_stage"]) == (3, 3)


def test_options_of_a_script_are_arguments() -> None:
    script = (
        "accelerate launch --config_file a.yaml trl/scripts/sft.py --use_peft \\\n"
        "  --per_device_train_batch_size 4 --lora_r 32 --optim=adamw_8bit\n"
    )
    found = reading(a_yaml=FSDP1, go_sh=script)
    assert found.layout["micro_batch"] == 4
    assert found.layout["recompute"] == "full"
    assert found.training["method"] == "lora"
    assert found.training["lora"]["rank"] == 32
    assert found.training["optimizer"] == "adamw-8bit"
    assert found.training["global_batch"] == 64


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"fsdp_config": {"fsdp_reshard_after_fwd": True}}, "fsdp_reshard_after_fwd"),
        ({"parallelism_config": {"pp_size": 2}}, "parallelism_config.pp_size"),
        ({"num_procs": 3}, "num_procs"),
        ({"use_cpu": True}, "use_cpu"),
    ],
)
def test_what_accelerate_passes_over_is_named(block: dict[str, Any], path: str) -> None:
    text = yaml.safe_dump(yaml.safe_load(FSDP1) | block)
    assert any(path in str(word) for word in reading(a_yaml=text).unknown)


def test_an_argument_that_nobody_has_is_named() -> None:
    given = "per_device_train_batch_size: 2\nlearning_rat: 0.1"
    assert any("learning_rat" in str(word) for word in reading(t_yaml=given).unknown)


@pytest.mark.parametrize("value", ["many", -1, 1.5, True])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    given = yaml.safe_dump({"per_device_train_batch_size": value})
    with pytest.raises(BadInputError, match="per_device_train_batch_size"):
        reading(t_yaml=given)


@pytest.mark.parametrize("text", ["", "hello: world", "[1, 2", "- 1"])
def test_files_of_nobody_are_refused(text: str) -> None:
    assert not reads({"a.yaml": text})
    with pytest.raises(BadInputError, match="distributed_type"):
        read({"a.yaml": text})


@pytest.mark.parametrize(
    ("kernels", "stack", "told"),
    [
        (None, {"name": "hf-liger", "loss": "liger"}, 0),
        (
            {"rope": False, "rms_norm": False, "swiglu": False},
            {"loss": "liger"},
            0,
        ),
        ({"rope": False}, {"loss": "liger"}, 1),
        ({"fused_linear_cross_entropy": False}, {}, 1),
    ],
)
def test_kernels_of_liger_are_those_that_the_trainer_takes(
    kernels: dict[str, bool] | None, stack: dict[str, str], told: int
) -> None:
    given = {"per_device_train_batch_size": 1, "bf16": True, "use_liger_kernel": True}
    if kernels is not None:
        given["liger_kernel_config"] = kernels
    found = reading(t_yaml=yaml.safe_dump(given))
    assert found.stack == stack
    assert len(found.unknown) == told

"""Settings that axolotl itself refuses are refused, and those it drops are told."""

from typing import Any

import pytest
import yaml

from planner.errors import BadInputError
from planner.launch.targets.axolotl.reader import read

FULL: dict[str, Any] = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "sequence_len": 2048,
    "micro_batch_size": 1,
    "optimizer": "adamw_torch",
}
LORA = FULL | {"adapter": "lora", "lora_target_linear": True}
LIGER = {"liger_fused_linear_cross_entropy": True}
PACKED = {"sample_packing": True}
SHARDS = {"fsdp_config": {"reshard_after_forward": True}, "fsdp_version": 2}


def text(its: dict[str, Any]) -> dict[str, str]:
    return {"a.yml": yaml.safe_dump(its)}


@pytest.mark.parametrize(
    ("its", "said"),
    [
        (
            FULL | {"batch_size": 8, "gradient_accumulation_steps": 2},
            "batch_size: goes not with gradient_accumulation_steps",
        ),
        (
            FULL | SHARDS | {"deepspeed": "deepspeed_configs/zero2.json"},
            "deepspeed: goes not with fsdp_config",
        ),
        (LORA | {"adapter": "qlora"}, "adapter: needs load_in_4bit"),
        (
            LORA | {"load_in_4bit": True, "load_in_8bit": True},
            "load_in_8bit: goes not with load_in_4bit",
        ),
        (FULL | {"adapter": "lora"}, "adapter: names no layers"),
        (
            FULL | {"optimizer": "adamw_8bit", "fsdp_config": {"offload_params": True}},
            "optimizer: goes not with offload_params",
        ),
        (
            FULL | {"sample_packing": True, "rl": "dpo"},
            "sample_packing: goes not with rl",
        ),
        (FULL | {"dp_shard_size": 4}, "dp_shard_size: needs fsdp_config"),
        (FULL | {"dp_replicate_size": 2}, "dp_replicate_size: needs fsdp_config"),
        *(
            (
                FULL
                | {
                    "fsdp": ["full_shard", "auto_wrap"],
                    "fsdp_config": {"fsdp_sharding_strategy": word},
                },
                "fsdp: is not fsdp_config.sharding_strategy",
            )
            for word in ("NO_SHARD", "SHARD_GRAD_OP", 2)
        ),
    ],
)
def test_a_contradiction_is_refused(its: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        read(text(its))


@pytest.mark.parametrize(
    ("its", "name"),
    [
        ({"dpo_use_liger_kernel": True, "rl": "dpo"}, "dpo_use_liger_kernel"),
        ({"dpo_padding_free": True, "rl": "dpo"}, "dpo_padding_free"),
        (LIGER, "liger_fused_linear_cross_entropy"),
        (
            {"fsdp_config": {"mixed_precision_policy": "fp32"}, "fsdp_version": 2},
            "fsdp_config.mixed_precision_policy",
        ),
        (
            {"fsdp_config": {"auto_wrap_policy": "SIZE_BASED_WRAP"}},
            "fsdp_config.fsdp_auto_wrap_policy",
        ),
        ({"deepspeed": "deepspeed_configs/zero1_torch_compile.json"}, "deepspeed"),
        ({"gc_steps": 1}, "gc_steps"),
        ({"processor_type": "AutoProcessor"}, "processor_type"),
        (PACKED, "sample_packing"),
        (PACKED | {"attn_implementation": "sdpa"}, "attn_implementation"),
        (PACKED | {"attn_implementation": "eager"}, "attn_implementation"),
        (PACKED | {"sdp_attention": True}, "sdp_attention"),
        (PACKED | {"eager_attention": True}, "eager_attention"),
    ],
)
def test_what_no_price_holds_is_told(its: dict[str, Any], name: str) -> None:
    assert [each.name for each in read(text(FULL | its)).unknown] == [name]


def test_kernels_of_liger_count_with_their_plugin() -> None:
    plugin = {"plugins": ["axolotl.integrations.liger.LigerPlugin"]}
    found = read(text(FULL | LIGER | plugin))
    assert (found.unknown, found.stack["loss"]) == ((), "liger")


def test_ray_starts_the_ranks() -> None:
    ray = {"use_ray": True, "ray_num_workers": 4}
    assert read(text(FULL | ray)).gpus == 4
    assert read(text(FULL | {"ray_num_workers": 4})).gpus is None


@pytest.mark.parametrize(("tf32", "precision"), [(True, "tf32"), (False, "fp32")])
def test_weights_are_wide_without_a_half_format(tf32: bool, precision: str) -> None:  # noqa: FBT001  # a switch
    found = read(text(FULL | {"bf16": False, "tf32": tf32}))
    assert found.training["precision"] == precision


@pytest.mark.parametrize(
    ("formats", "precision"),
    [
        ({"fp16": True}, "fp16"),
        ({"fp16": True, "bf16": "auto"}, "fp16"),
        ({"fp16": True, "bf16": True}, "bf16"),
        ({}, "bf16"),
    ],
)
def test_fp16_goes_before_a_format_that_is_left_open(
    formats: dict[str, object], precision: str
) -> None:
    assert read(text(FULL | formats)).training["precision"] == precision


def test_flash_attention_keeps_packed_texts_apart() -> None:
    found = read(text(FULL | PACKED | {"attn_implementation": "flash_attention_2"}))
    assert (found.unknown, found.stack["attention"]) == ((), "fa2")

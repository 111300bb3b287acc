"""Settings that trainers refuse are refused, and those without a price are told."""

from typing import Any

import pytest
import yaml

from planner.errors import BadInputError
from planner.launch.brief import Reading
from planner.launch.importing import read_texts

Its = dict[str, Any]
TRAINER: Its = {"per_device_train_batch_size": 2, "bf16": True, "max_length": 2048}
FACTORY: Its = {
    "stage": "sft",
    "do_train": True,
    "finetuning_type": "lora",
    "lora_target": "all",
    "cutoff_len": 2048,
    "bf16": True,
    "per_device_train_batch_size": 1,
}
FULL = FACTORY | {"finetuning_type": "full"}
TUNE: Its = {
    "model": {"_component_": "torchtune.models.llama3_1.llama3_1_8b"},
    "tokenizer": {"max_seq_len": 2048},
    "dataset": {"_component_": "torchtune.datasets.alpaca_dataset", "packed": True},
    "optimizer": {"_component_": "torch.optim.AdamW", "fused": True},
    "batch_size": 1,
    "dtype": "bf16",
    "fsdp_cpu_offload": False,
}
TUNE_LORA = TUNE | {
    "model": {"_component_": "torchtune.models.llama3_1.lora_llama3_1_8b"}
}
PLACES: Its = {"distributed_type": "MULTI_GPU", "mixed_precision": "bf16"}
PACKED, LOOSE = TUNE["dataset"], TUNE["dataset"] | {"packed": False}


def read(target: str, *contents: Its) -> Reading:
    files = {f"{n}.yaml": yaml.safe_dump(its) for n, its in enumerate(contents)}
    return read_texts(files, target, "the files")


def accumulation(**its: object) -> Its:
    return {"accelerator_config": {"gradient_accumulation_kwargs": its}}


@pytest.mark.parametrize(
    ("target", "its", "said"),
    [
        ("llamafactory", FULL | {"quantization_bit": 4}, "quantization_bit: goes not"),
        ("llamafactory", FACTORY | {"do_train": False}, "do_train: trains nothing"),
        (
            "llamafactory",
            {n: v for n, v in FACTORY.items() if n != "do_train"}
            | {"do_predict": True},
            "do_train: trains nothing",
        ),
        ("llamafactory", FACTORY | {"use_apollo": True}, "use_apollo: goes not with"),
        (
            "llamafactory",
            FULL | {"use_galore": True, "use_apollo": True},
            "use_galore: goes not with use_apollo",
        ),
        ("llamafactory", FULL | {"use_dora": True}, "use_dora: goes not with"),
        (
            "accelerate",
            TRAINER | accumulation(num_steps=4) | {"gradient_accumulation_steps": 2},
            "num_steps: is said beside gradient_accumulation_steps",
        ),
        (
            "torchtune",
            TUNE | {"optimizer_in_bwd": True, "gradient_accumulation_steps": 2},
            "optimizer_in_bwd: goes not with gradient_accumulation_steps",
        ),
        (
            "torchtune",
            TUNE | {"optimizer_in_bwd": True, "clip_grad_norm": 1.0},
            "optimizer_in_bwd: goes not with clip_grad_norm",
        ),
        ("torchtune", TUNE_LORA | {"optimizer_in_bwd": True}, "recipes of adapters"),
        (
            "torchtune",
            TUNE | {"enable_activation_offloading": True},
            "needs enable_activation_checkpointing",
        ),
        ("torchtune", TUNE | {"dtype": "fp16"}, "dtype: is no format"),
        ("torchtune", TUNE | {"tensor_parallel_dim": 2}, "needs tensor_parallel_plan"),
        ("torchtune", TUNE | {"dataset": [PACKED, LOOSE]}, "dataset: is a list"),
        (
            "trl",
            {"dataset_name": "x", "dtype": "bfloat16", "use_peft": True}
            | {"load_in_4bit": True, "load_in_8bit": True},
            "load_in_8bit: goes not with load_in_4bit",
        ),
    ],
)
def test_what_a_tool_refuses_is_refused(target: str, its: Its, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        read(target, its)


@pytest.mark.parametrize(
    ("target", "its", "name"),
    [
        (
            "accelerate",
            TRAINER | {"accelerator_config": {"split_batches": True}},
            "accelerator_config.split_batches",
        ),
        ("accelerate", TRAINER | {"split_batches": True}, "split_batches"),
        ("accelerate", TRAINER | {"full_determinism": True}, "full_determinism"),
        ("accelerate", TRAINER | {"use_logits_to_keep": True}, "use_logits_to_keep"),
        ("accelerate", TRAINER | {"use_cache": True}, "use_cache"),
        (
            "accelerate",
            TRAINER | {"label_smoothing_factor": 0.1},
            "label_smoothing_factor",
        ),
        ("accelerate", TRAINER | {"ddp_backend": "gloo"}, "ddp_backend"),
        ("accelerate", TRAINER | {"fsdp_config": "f.json"}, "fsdp_config"),
        ("llamafactory", FACTORY | {"use_eaft_loss": True}, "use_eaft_loss"),
        (
            "llamafactory",
            FACTORY | {"adapter_name_or_path": "saves/sft"},
            "adapter_name_or_path",
        ),
        ("llamafactory", FULL | {"freeze_vision_tower": False}, "freeze_vision_tower"),
        ("torchtune", TUNE | {"device": "cpu"}, "device"),
    ],
)
def test_what_no_price_holds_is_told(target: str, its: Its, name: str) -> None:
    assert name in [each.name for each in read(target, its).unknown]


def test_accumulation_of_accelerator_config_is_read() -> None:
    found = read("accelerate", TRAINER | accumulation(num_steps=4))
    assert (found.layout["grad_accum"], found.unknown) == (4, ())


def test_a_list_of_packed_datasets_is_packed() -> None:
    packed = read("torchtune", TUNE | {"dataset": [PACKED, PACKED]})
    loose = read("torchtune", TUNE | {"dataset": [LOOSE, LOOSE]})
    assert [its.training["padding"] for its in (packed, loose)] == ["packed", "longest"]


def test_workers_of_ray_are_the_ranks_of_llamafactory() -> None:
    assert read("llamafactory", FACTORY | {"ray_num_workers": 4}).gpus == 4


@pytest.mark.parametrize("axis", ["tp_size", "cp_size"])
def test_copies_beside_tensor_ranks_need_shards(axis: str) -> None:
    """As ParallelismConfig does, under any kind of run."""
    mesh: Its = {axis: 2, "dp_replicate_size": 4}
    with pytest.raises(BadInputError, match="dp_replicate_size: goes not with"):
        read("accelerate", PLACES | {"parallelism_config": mesh}, TRAINER)
    whole = mesh | {"dp_shard_size": 2}
    sharded = PLACES | {"distributed_type": "FSDP", "parallelism_config": whole}
    read("accelerate", sharded, TRAINER)


@pytest.mark.parametrize(
    ("said", "kind"), [({}, "all-gather"), ({"cp_comm_strategy": "alltoall"}, "ring")]
)
def test_keys_are_gathered_unless_the_mesh_sends_them_on(said: Its, kind: str) -> None:
    mesh = {"cp_size": 2, "dp_shard_size": 2} | said
    places = PLACES | {"distributed_type": "FSDP", "parallelism_config": mesh}
    assert read("accelerate", places, TRAINER).layout["cp_kind"] == kind


def test_a_file_of_fsdp_config_is_followed() -> None:
    """It is JSON beside the arguments, and was called absent."""
    its = TRAINER | {"fsdp": "full_shard", "fsdp_config": "conf/f.json"}
    files = {
        "t.yaml": yaml.safe_dump(its),
        "f.json": '{"activation_checkpointing": true, "reshard_after_forward": true}',
    }
    found = read_texts(files, "accelerate", "the files")
    assert (found.unknown, found.layout["recompute"]) == ((), "full")
    assert found.layout["zero_stage"] == 3
    wrapped = files | {"f.json": '{"auto_wrap_policy": "NO_WRAP"}'}
    (told,) = read_texts(wrapped, "accelerate", "the files").unknown
    assert told.name == "fsdp_config.fsdp_auto_wrap_policy"


AXOLOTL: Its = {"base_model": "x", "sequence_len": 2048, "micro_batch_size": 2}
EVALUATED = "per_device_eval_batch_size"


@pytest.mark.parametrize(
    ("target", "its", "name"),
    [
        ("accelerate", TRAINER | {"eval_strategy": "steps", EVALUATED: 4}, EVALUATED),
        ("accelerate", TRAINER | {"eval_strategy": "steps", EVALUATED: 2}, ""),
        ("accelerate", TRAINER | {"eval_strategy": "no", EVALUATED: 4}, ""),
        ("accelerate", TRAINER | {EVALUATED: 4}, ""),
        ("accelerate", TRAINER | {"do_eval": True, EVALUATED: 4}, EVALUATED),
        ("llamafactory", FACTORY | {"eval_strategy": "epoch", EVALUATED: 8}, EVALUATED),
        ("axolotl", AXOLOTL | {"val_set_size": 0.1, "eval_batch_size": 4}, "eval_b"),
        ("axolotl", AXOLOTL | {"val_set_size": 0.1, "eval_batch_size": 2}, ""),
        ("axolotl", AXOLOTL | {"val_set_size": 0.0, "eval_batch_size": 4}, ""),
    ],
)
def test_larger_batches_of_evaluation_are_told(
    target: str, its: Its, name: str
) -> None:
    """Their logits are in fp32 and whole, whatever training holds."""
    found = [each.name for each in read(target, its).unknown]
    assert any(each.startswith(name) for each in found if name) == bool(name)
    assert name or not any("eval" in each for each in found)

"""Every size of a model that a file states is held against the model that is named."""

import pytest

from planner.errors import BadInputError
from planner.launch.importing import read_texts
from planner.launch.sizes import refuse_other_model
from planner.models import preset

SCRIPT = (
    "torchrun --nproc-per-node 8 pretrain_gpt.py --bf16 --micro-batch-size 1 "
    "--global-batch-size 64 --tensor-model-parallel-size 2 --seq-length 4096 \\\n"
)
BRIDGE = "model:\n  tensor_model_parallel_size: 2\n  num_layers: 32\n  {}\n"
CASES = [
    ("llama-3.1-8b", "--mtp-num-layers 1", "mtp_num_layers: 1"),
    ("llama-3.1-8b", "--window-size 511,0", "window_size: [511, 0]"),
    ("llama-3.1-8b", "--multi-latent-attention", "multi_latent_attention: true"),
    ("llama-3.1-8b", "--num-experts 8", "num_moe_experts: 8"),
    ("llama-3.1-8b", "--kv-channels 64", "kv_channels: 64"),
    ("deepseek-v3", "--mtp-num-layers 2", "mtp_num_layers: 2"),
    ("deepseek-v3", "--kv-lora-rank 256", "kv_lora_rank: 256"),
    ("deepseek-v3", "--moe-shared-expert-intermediate-size 4096",
     "moe_shared_expert_intermediate_size: 4096"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "option", "field"), CASES)
def test_another_size_is_another_model(model: str, option: str, field: str) -> None:
    for file, text, place in (
        ("a.sh", SCRIPT + f"  {option}\n", "a.sh:2"),
        ("a.yaml", BRIDGE.format(field), "a.yaml:4"),
    ):
        sizes = read_texts({file: text}, None, file).sizes
        stated = [size for size in sizes if size.what not in ("layers", "positions")]
        with pytest.raises(BadInputError, match="the files have another model") as no:
            refuse_other_model(stated, preset(model), model)
        assert no.value.file == place


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("llama-3.1-8b", "--kv-channels 128 --group-query-attention"),
        ("gpt-oss-20b", "--window-size 127,0 --num-experts 32"),
        ("deepseek-v3", "--mtp-num-layers 1 --multi-latent-attention --kv-channels 64 "
         "--kv-lora-rank 512 --q-lora-rank 1536"),
    ],
)  # fmt: skip
def test_the_sizes_of_the_model_pass(model: str, options: str) -> None:
    rotary = "--position-embedding-type rope "
    sizes = read_texts({"a.sh": SCRIPT + rotary + options}, None, "a.sh").sizes
    refuse_other_model(sizes, preset(model), model)


@pytest.mark.parametrize(
    ("model", "options", "field"),
    [
        ("llama-3.1-8b", "", "--position-embedding-type"),
        ("llama-3.1-8b", "--use-rotary-position-embeddings", ""),
        ("llama-3.1-8b", "--position-embedding-type mrope", ""),
        ("llama-3.1-8b", "--use-checkpoint-args", ""),
        ("gpt2", "", ""),
        ("gpt2", "--position-embedding-type rope", "--position-embedding-type"),
        ("gpt2", "--vocab-size 50257", ""),
        ("gpt2", "--vocab-size 50000", "--vocab-size"),
        ("gpt2", "--padded-vocab-size 50432", ""),
        ("gpt2", "--padded-vocab-size 51200", "--padded-vocab-size"),
        (
            "gpt2",
            "--padded-vocab-size 50260 --make-vocab-size-divisible-by 2",
            "",
        ),
    ],
)
def test_positions_and_vocabulary_are_those_of_the_model(
    model: str, options: str, field: str
) -> None:
    """Positions are learned, and rows a multiple of 128 x tp, unless told otherwise."""
    sizes = read_texts({"a.sh": SCRIPT + options}, None, "a.sh").sizes
    if not field:
        refuse_other_model(sizes, preset(model), model)
        return
    with pytest.raises(BadInputError, match="the files have another model") as no:
        refuse_other_model(sizes, preset(model), model)
    assert no.value.field == field


def test_an_option_of_ours_is_found_in_no_file() -> None:
    with pytest.raises(BadInputError, match="say which") as refused:
        read_texts({"a.yml": "name: x\ntarget: y\n"}, None, "a.yml")
    assert refused.value.file == "a.yml"

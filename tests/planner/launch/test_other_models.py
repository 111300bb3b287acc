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
        stated = [size for size in sizes if size.what != "layers"]
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
    sizes = read_texts({"a.sh": SCRIPT + options}, None, "a.sh").sizes
    refuse_other_model(sizes, preset(model), model)


def test_an_option_of_ours_is_found_in_no_file() -> None:
    with pytest.raises(BadInputError, match="say which") as refused:
        read_texts({"a.yml": "name: x\ntarget: y\n"}, None, "a.yml")
    assert refused.value.file == "a.yml"

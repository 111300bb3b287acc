"""A configuration of NeMo 1 is read as the script of Megatron-LM that it stands for."""

from typing import Any

import pytest
import yaml

from planner.errors import BadInputError
from planner.launch.brief import Reading
from planner.launch.importing import read_texts
from planner.launch.targets.nemo.reader import names

CONFIG: dict[str, dict[str, Any]] = {
    "trainer": {"devices": 8, "num_nodes": 16, "precision": "bf16", "max_steps": 9},
    "model": {
        "mcore_gpt": True,
        "megatron_amp_O2": True,
        "transformer_engine": True,
        "micro_batch_size": 1,
        "global_batch_size": 512,
        "tensor_model_parallel_size": 4,
        "pipeline_model_parallel_size": 4,
        "virtual_pipeline_model_parallel_size": 5,
        "sequence_parallel": True,
        "encoder_seq_length": 4096,
        "max_position_embeddings": "${.encoder_seq_length}",
        "num_layers": 80,
        "hidden_size": 8192,
        "ffn_hidden_size": "${multiply:3.5, ${model.hidden_size}}",
        "num_attention_heads": 64,
        "num_query_groups": 8,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        "normalization": "rmsnorm",
        "bias": False,
        "activation": "fast-swiglu",
        "position_embedding_type": "rope",
        "rotary_base": 500000.0,
        "share_embeddings_and_output_weights": False,
        "override_vocab_size": 128256,
        "cross_entropy_loss_fusion": True,
        "activations_checkpoint_granularity": None,
        "activations_checkpoint_method": "block",
        "activations_checkpoint_num_layers": 0,
        "overlap_p2p_comm": True,
        "fp8": False,
        "optim": {
            "name": "mcore_distributed_optim",
            "overlap_grad_sync": True,
            "overlap_param_sync": True,
        },
        "data": {"seq_length": 4096, "data_prefix": ["a"]},
    },
}
"""Llama 70B of NVIDIA/NeMo-Framework-Launcher, conf/training/llama, in short. [-]"""
SCRIPT = """torchrun --nnodes 16 --nproc-per-node 8 pretrain_gpt.py --bf16 \
--micro-batch-size 1 --global-batch-size 512 --tensor-model-parallel-size 4 \
--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 5 \
--sequence-parallel --seq-length 4096 --max-position-embeddings 4096 \
--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 \
--group-query-attention --num-query-groups 8 --hidden-dropout 0 --attention-dropout 0 \
--normalization RMSNorm --disable-bias-linear --swiglu \
--position-embedding-type rope --rotary-base 500000 \
--untie-embeddings-and-output-weights --vocab-size 128256 \
--cross-entropy-loss-fusion --optimizer adam --use-distributed-optimizer \
--overlap-grad-reduce --overlap-param-gather \
--no-create-attention-mask-in-dataloader
"""


def edited(changes: dict[str, Any]) -> Reading:
    """The configuration with fields changed, by path; None takes one away."""
    blocks: Any = yaml.safe_load(yaml.safe_dump(CONFIG))
    for path, value in changes.items():
        *way, name = path.split(".")
        inside = blocks
        for each in way:
            inside = inside[each]
        inside[name] = value
    return read_texts({"a.yaml": yaml.safe_dump(blocks)}, None, "a.yaml")


def test_it_is_the_script_that_it_stands_for() -> None:
    found, script = edited({}), read_texts({"a.sh": SCRIPT}, None, "a.sh")
    assert found.unknown == script.unknown == ()
    assert (found.target, found.gpus, found.nodes) == ("megatron", 128, 16)
    assert (found.layout, found.training) == (script.layout, script.training)
    assert found.model == script.model
    own = {"name": "megatron-2024", "tp_overlap": False}
    assert found.stack == {**script.stack, **own}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"model.mcore_gpt": False}, "model.mcore_gpt"),
        ({"model.megatron_amp_O2": None}, "model.megatron_amp_O2"),
        ({"model.fsdp": True}, "model.fsdp"),
        ({"model.name": "megatron_gpt_full_te_layer_autocast"}, "model.name"),
        ({"model.optim.name": "adafactor"}, "model.optim.name"),
        ({"model.activation": "reglu"}, "model.activation"),
        ({"model.overlap_p2p_comm": False}, "model.overlap_p2p_comm"),
        ({"model.precision": "16"}, "model.precision"),
        ({"trainer.precision": "64"}, "trainer.precision"),
        ({"trainer.accumulate_grad_batches": 2}, "trainer.accumulate_grad_batches"),
        ({"model.data.reset_attention_mask": True}, "model.data.reset_attention_mask"),
        ({"model.moe_expert_capacity_factor": 1.0, "model.num_moe_experts": 8},
         "model.moe_expert_capacity_factor"),
        ({"exp_manager": {"ema": {"enable": True}}}, "exp_manager.ema.enable"),
        ({"model.apply_rope_fusion": False}, "model.apply_rope_fusion"),
        ({"model.deterministic_mode": True}, "model.deterministic_mode"),
        ({"model.defer_embedding_wgrad_compute": True},
         "model.defer_embedding_wgrad_compute"),
    ],
)  # fmt: skip
def test_what_is_not_priced_is_named_as_the_file_names_it(
    changes: dict[str, Any], name: str
) -> None:
    assert name in {each.name for each in edited(changes).unknown}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"model.data.seq_length": 8192}, "model.data.seq_length"),
        ({"model.micro_batch_size": None}, "model.micro_batch_size"),
    ],
)
def test_what_contradicts_itself_is_refused(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadInputError) as raised:
        edited(changes)
    assert raised.value.field == field


def test_a_run_has_one_node_unless_it_says_more() -> None:
    assert edited({"trainer.num_nodes": None}).gpus == 8
    assert edited({"trainer.devices": None}).gpus is None


def test_layers_are_recomputed_where_the_granularity_says_so() -> None:
    whole = {"model.activations_checkpoint_granularity": "full"}
    more = {"model.activations_checkpoint_num_layers": 1}
    found = edited(whole | more | {"model.activations_checkpoint_method": "uniform"})
    assert found.layout["recompute"] == "full"
    assert edited({}).layout["recompute"] == "none"
    half = edited({"model.activations_checkpoint_granularity": "selective"})
    assert half.layout["recompute"] == "selective"


def test_gradients_of_16_bits_are_those_of_the_software_of_the_time() -> None:
    found = edited({"model.optim.grad_sync_dtype": "bf16"})
    assert found.stack["name"] == "nemo-2024"
    assert edited({"model.fp8": True}).training["precision"] == "fp8"
    assert edited({"model.optim.name": "fused_adam"}).layout["zero_stage"] == 0


def test_no_field_is_in_two_lists() -> None:
    own = names()
    lists = (own.options, own.words, own.plain, own.harmless)
    every = [path for each in lists for path in each]
    assert len(every) == len(set(every))

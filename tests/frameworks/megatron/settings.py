"""Arguments of Megatron-LM as megatron-core's own configuration takes them.

Runs in the environment of megatron-core, which has no command line: options are
parsed by the rebuilt parser, and turned into a TransformerConfig as
megatron/training/arguments.py does in core_transformer_config_from_args. Where
TransformerEngine is asked for its version or its fused kernels, it answers that it is
there: nothing of it runs.
"""

import dataclasses
import importlib.util
import logging
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import megatron.core.transformer.transformer_config as configs
import torch
from megatron.core.activations import squared_relu
from megatron.core.models.common.embeddings import rope_utils
from megatron.core.transformer.moe import moe_utils
from torch.nn import functional

ROOT = Path(__file__).parents[3]
KNOWN = ROOT / "planner" / "frameworks" / "megatron" / "launch" / "known.py"
FUSED = (
    "fused_permute",
    "fused_permute_with_probs",
    "fused_sort_chunks_by_index",
    "fused_sort_chunks_by_index_with_probs",
    "fused_unpermute",
)
LIST = re.compile(r"\[([01])\]\*(\d+)")


def _there(*_: object, **__: object) -> bool:
    return True


configs.is_te_min_version = _there
rope_utils.fused_apply_rotary_pos_emb = rope_utils.fused_apply_rotary_pos_emb_thd = (
    _there
)
for _name in FUSED:
    setattr(moe_utils, _name, _there)
warnings.simplefilter("ignore")
logging.getLogger().setLevel(logging.ERROR)


def parsed(words: Sequence[str]) -> Namespace:
    """Values of all options; an option that Megatron-LM lacks ends the run."""
    sys.path.append(str(ROOT))  # known.py reads its YAML with the planner's parser
    spec = importlib.util.spec_from_file_location("known", KNOWN)
    assert spec is not None
    assert spec.loader is not None
    known = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(known)
    values, left = known.parse(words)
    if left:
        raise SystemExit(f"unknown arguments: {left}")
    space: Namespace = values
    return space


def checked(args: Namespace, world: int) -> None:
    """Rules of validate_args that are about degrees; megatron-core has none of them."""
    model = (
        args.tensor_model_parallel_size
        * args.pipeline_model_parallel_size
        * args.context_parallel_size
    )
    assert world % model == 0, f"{world} ranks are no multiple of {model}"
    args.data_parallel_size = world // model
    share = args.micro_batch_size * args.data_parallel_size
    assert args.global_batch_size % share == 0, "the batch does not divide"
    assert args.seq_length % (2 * args.context_parallel_size) == 0
    assert args.max_position_embeddings >= args.seq_length
    if args.overlap_param_gather:
        assert args.use_distributed_optimizer
        assert args.overlap_grad_reduce


def config_of(args: Namespace, **changes: Any) -> configs.TransformerConfig:
    """The TransformerConfig of the arguments, which checks itself.

    Args:
        args: Values of all options.
        changes: Fields to set otherwise.

    Returns:
        megatron-core's own configuration.
    """
    latent = args.multi_latent_attention
    kind = configs.MLATransformerConfig if latent else configs.TransformerConfig
    fields = {
        f.name: getattr(args, f.name)
        for f in dataclasses.fields(kind)
        if hasattr(args, f.name)
    }
    fields |= _renamed(args) | _activation(args) | changes
    if args.rope_type is None:
        fields.pop("rope_type", None)
    config = kind(**fields)
    # As validate_args: only the interleaved schedule overlaps its sends.
    virtual = (config.virtual_pipeline_model_parallel_size or 1) > 1
    config.overlap_p2p_comm = bool(args.overlap_p2p_comm and virtual)
    config.batch_p2p_comm = not config.overlap_p2p_comm
    return config


def _renamed(args: Namespace) -> dict[str, Any]:
    groups = args.num_query_groups if args.group_query_attention else None
    frequency = LIST.findall(str(args.moe_layer_freq))
    layers = [int(has) for has, count in frequency for _ in range(int(count))]
    width = args.moe_ffn_hidden_size if args.num_experts else None
    return {
        "num_moe_experts": args.num_experts,
        "num_query_groups": groups,
        "moe_ffn_hidden_size": width,
        "moe_layer_freq": layers or 1,
        "params_dtype": torch.bfloat16,
        "pipeline_dtype": torch.bfloat16,
        "batch_p2p_comm": False,
        "overlap_p2p_comm": True,
        "fp8_param": args.fp8_param_gather,
        "virtual_pipeline_model_parallel_size": (
            args.num_virtual_stages_per_pipeline_rank
        ),
        "num_layers_in_first_pipeline_stage": args.decoder_first_pipeline_num_layers,
        "num_layers_in_last_pipeline_stage": args.decoder_last_pipeline_num_layers,
        "cp_comm_type": args.cp_comm_type[0],
        "moe_aux_loss_coeff": _one(args.moe_aux_loss_coeff),
        "moe_router_load_balancing_type": _one(args.moe_router_load_balancing_type),
        "window_size": _pair(args.window_size),
        "rotary_interleaved": False,
        "attention_backend": configs.AttnBackend.auto,
    }


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _pair(text: str | None) -> tuple[int, ...] | None:
    return tuple(int(part) for part in text.split(",")) if text else None


def _activation(args: Namespace) -> dict[str, Any]:
    if args.swiglu:
        return {
            "activation_func": functional.silu,
            "gated_linear_unit": True,
            "bias_activation_fusion": True,
        }
    if args.squared_relu:
        return {"activation_func": squared_relu, "bias_activation_fusion": False}
    return {"bias_activation_fusion": args.add_bias_linear}

"""accelerate.yaml: number of ranks, and axes of the mesh."""

from typing import Any

from planner.frameworks.accelerate.launch.plan import (
    attention,
    deepspeed,
    fsdp,
    mixed_precision,
    offloads_checkpoints,
    recompute,
    replicas,
    shards,
)
from planner.frameworks.accelerate.limits import ROTATIONS
from planner.frameworks.transformers import has_buffers, wrapped_block
from planner.launch.brief import Brief

DS_FILE = "ds_config.json"
SIZES = "parallelism_config_"


def placement(brief: Brief) -> dict[str, Any]:
    """Content of accelerate.yaml.

    Args:
        brief: The plan, without gaps. [-]

    Returns:
        Keys of accelerate's ClusterConfig. [-]
    """
    found: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": _kind(brief),
        **_precision(brief),
        "num_machines": brief.nodes,
        "num_processes": brief.layout.gpus,
        "machine_rank": 0,
        "rdzv_backend": "static",
        "same_network": True,
        "main_training_function": "main",
        "use_cpu": False,
    }
    if brief.training.precision == "fp8":
        found["fp8_config"] = {
            "fp8_backend": "AO",
            "fp8_enable_fsdp_float8_all_gather": False,
        }
    if fsdp(brief):
        found["fsdp_config"] = _fsdp(brief)
    if deepspeed(brief):
        found["deepspeed_config"] = _plugin(brief)
    if shards(brief):
        found["parallelism_config"] = _mesh(brief)
    elif brief.layout.cp > 1:
        found["parallelism_config"] = _sequence(brief)
    return found


def _precision(brief: Brief) -> dict[str, Any]:
    """Precision; absent beside DeepSpeed's file, as accelerate refuses both."""
    return {} if deepspeed(brief) else {"mixed_precision": mixed_precision(brief)}


def _kind(brief: Brief) -> str:
    if deepspeed(brief):
        return "DEEPSPEED"
    if fsdp(brief):
        return "FSDP"
    return "MULTI_GPU" if brief.layout.gpus > 1 else "NO"


def _fsdp(brief: Brief) -> dict[str, Any]:
    its = brief.layout
    found: dict[str, Any] = {
        "fsdp_version": 2,
        "fsdp_reshard_after_forward": its.zero_stage == 3,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_offload_params": its.offload.parameters > 0,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_cpu_ram_efficient_loading": not has_buffers(brief.architecture.family),
        "fsdp_activation_checkpointing": recompute(its) == "full",
    }
    if (block := wrapped_block(brief.architecture.family)) is not None:
        found["fsdp_transformer_layer_cls_to_wrap"] = block
    if offloads_checkpoints(brief):
        found["fsdp_activation_checkpointing_offload"] = True
    return found


def _plugin(brief: Brief) -> dict[str, Any]:
    return {
        "deepspeed_config_file": DS_FILE,
        "deepspeed_multinode_launcher": "standard",
        "zero3_init_flag": brief.layout.zero_stage == 3,
    }


def _mesh(brief: Brief) -> dict[str, Any]:
    """Ranks by axis; accelerate checks their product against the processes."""
    its = brief.layout
    shard = its.dp_shard // its.cp if its.zero_stage > 1 else 1
    found: dict[str, Any] = {
        f"{SIZES}dp_replicate_size": replicas(its),
        f"{SIZES}dp_shard_size": shard,
        f"{SIZES}tp_size": its.tp,
        f"{SIZES}cp_size": its.cp,
    }
    if its.cp > 1:
        found[f"{SIZES}cp_comm_strategy"] = ROTATIONS[its.cp_kind]
    return found


def _sequence(brief: Brief) -> dict[str, Any]:
    """Ranks of Ulysses under DeepSpeed, with the sequence length."""
    return {
        f"{SIZES}sp_size": brief.layout.cp,
        f"{SIZES}sp_backend": "deepspeed",
        f"{SIZES}sp_seq_length": brief.training.seq_len,
        f"{SIZES}sp_seq_length_is_variable": False,
        f"{SIZES}sp_attn_implementation": attention(brief),
    }

"""accelerate.yaml, with ranks and axes of the mesh, and ds_config.json beside it."""

from typing import Any

from planner.frameworks.accelerate.limits import ROTATIONS
from planner.frameworks.transformers import has_buffers, wrapped_block
from planner.launch.brief import Brief
from planner.launch.targets.accelerate.plan import (
    attention,
    deepspeed,
    fsdp,
    mixed_precision,
    offloads_checkpoints,
    recompute,
    replicas,
    shards,
)

DS_FILE = "ds_config.json"
DRIVES = "/local_nvme"
"""Folder on a node's own drives, which the user changes in the file. [text]"""
SIZES = "parallelism_config_"


def placement(brief: Brief) -> dict[str, Any]:
    """Content of accelerate.yaml."""
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


def zero(brief: Brief) -> dict[str, Any]:
    """Settings of ds_config.json.

    Returns:
        JSON; no train_batch_size, which Trainer works out from the ranks. [-]
    """
    its = brief.layout
    found: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": its.micro_batch,
        "gradient_accumulation_steps": its.grad_accum,
        "gradient_clipping": 1.0,
        **_formats(brief),
        "zero_optimization": _stage(brief),
    }
    if its.offload.optimizer:
        # Trainer's own optimizer is none for the host: DeepSpeed makes CPUAdam.
        auto = dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")
        found["optimizer"] = {"type": "AdamW", "params": auto}
    if its.tp > 1:
        found["tensor_parallel"] = {"autotp_size": its.tp}
    return found


def _formats(brief: Brief) -> dict[str, Any]:
    precision = brief.training.precision
    wire = brief.layout.comm_dtype.gradients
    found: dict[str, Any] = {"communication_data_type": wire}
    if precision in ("bf16", "fp16"):
        found[precision] = {"enabled": True}
    if precision == "bf16" and brief.layout.zero_stage:
        found["data_types"] = {"grad_accum_dtype": "fp32"}
    return found


def _stage(brief: Brief) -> dict[str, Any]:
    its = brief.layout
    found: dict[str, Any] = {"stage": its.zero_stage}
    if its.zero_stage:
        found |= {"overlap_comm": True, "contiguous_gradients": True}
    if its.zero_stage == 3:
        found["stage3_gather_16bit_weights_on_model_save"] = True
        if its.hpz > 1:
            found["zero_hpz_partition_size"] = its.hpz
    return found | _offload(brief)


def _offload(brief: Brief) -> dict[str, Any]:
    where = brief.layout.offload
    block: dict[str, Any] = {"device": where.device, "pin_memory": True}
    if where.device == "nvme":
        block["nvme_path"] = DRIVES
    found: dict[str, Any] = {}
    if where.optimizer:
        ratio = {"ratio": where.optimizer} if where.optimizer < 1 else {}
        found["offload_optimizer"] = block | ratio
    if where.parameters:
        found["offload_param"] = dict(block)
    return found

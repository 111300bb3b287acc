"""ds_config.json for accelerate's plugin of DeepSpeed."""

from typing import Any

from planner.launch.brief import Brief

DRIVES = "/local_nvme"
"""Folder on a node's own drives, which the user changes in the file. [text]"""


def zero(brief: Brief) -> dict[str, Any]:
    """Settings of ds_config.json.

    Args:
        brief: The plan, without gaps. [-]

    Returns:
        JSON; no train_batch_size, which Trainer works out from the ranks. [-]
    """
    its = brief.layout
    found: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": its.micro_batch,
        "gradient_accumulation_steps": its.grad_accum,
        "gradient_clipping": 1.0,
        **_format(brief),
        "zero_optimization": _stage(brief),
    }
    if its.offload.optimizer:
        # Trainer's own optimizer is none for the host: DeepSpeed makes CPUAdam.
        auto = dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")
        found["optimizer"] = {"type": "AdamW", "params": auto}
    if its.tp > 1:
        found["tensor_parallel"] = {"autotp_size": its.tp}
    return found


def _format(brief: Brief) -> dict[str, Any]:
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
        if its.dp_shard < its.dp * its.cp:
            found["zero_hpz_partition_size"] = its.dp_shard
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

"""run.yaml: settings of train.py beside the trainer's arguments."""

from typing import Any

from planner.frameworks.accelerate.variants import written
from planner.frameworks.adapted import targets
from planner.launch.brief import Brief
from planner.launch.targets.accelerate.plan import (
    attention,
    deepspeed,
    fsdp,
    option,
    own_mesh,
    replicas,
    stack,
    with_trl,
)

HALF = {"bf16": "bfloat16", "fp16": "float16", "fp8": "bfloat16"}
"""Formats of weights by precision. [text]"""


def run(brief: Brief) -> dict[str, Any]:
    """Content of run.yaml."""
    chunked = option(brief, "loss", "hf") == "chunked"
    found: dict[str, Any] = {
        "trainer": "trl" if with_trl(brief) else "transformers",
        "seq_len": brief.training.seq_len,
        "weights": weights(brief),
        "attention": attention(brief),
        "loss": "chunked" if chunked else "model",
    }
    if own_mesh(brief):
        found["distributed"] = _distributed(brief)
    if brief.training.method != "full":
        found["adapters"] = _adapters(brief)
        found["adapters_in_fp32"] = brief.training.lora.precision == "fp32"
    if brief.training.method == "qlora":
        found["quantization"] = _quantization(brief)
    return found


def weights(brief: Brief) -> str:
    """Format that weights are loaded in; shards of transformers' mesh stay in it."""
    sharded = own_mesh(brief) and brief.layout.zero_stage > 1
    scaled = brief.training.precision == "fp16" and brief.training.method == "full"
    alone = not (fsdp(brief) or deepspeed(brief))
    if stack(brief) == "hf-amp" or (scaled and alone):
        # The gradient scaler refuses fp16 gradients: autocast makes fp16 copies.
        return "float32"
    if sharded and stack(brief) != "hf-bf16":
        return "float32"
    return HALF.get(brief.training.precision, "float32")


def _distributed(brief: Brief) -> dict[str, Any]:
    """Transformers' own mesh; ZeRO 2 keeps the gathered weights of layers."""
    its = brief.layout
    found: dict[str, Any] = {"tp_size": its.tp}
    if its.zero_stage < 2:
        return found
    found["fsdp_size"] = its.dp_shard
    if replicas(its) > 1:
        found["dp_replicate_size"] = replicas(its)
    if its.zero_stage == 2:
        found["fsdp_plan"] = {"model.layers.*": "keep_full_weight"}
    found["fsdp_mixed_precision"] = stack(brief) != "hf-bf16"
    if its.offload.parameters:
        found["fsdp_cpu_offload"] = True
    return found


def _adapters(brief: Brief) -> dict[str, Any]:
    its = brief.training.lora
    found: dict[str, Any] = {
        "r": its.rank,
        "lora_alpha": 2 * its.rank,
        "lora_dropout": its.dropout,
        "target_modules": targets(brief.asked),
        "bias": "none",
        "task_type": "CAUSAL_LM",
    }
    if its.modules_to_save:
        found["modules_to_save"] = list(its.modules_to_save)
    return found | written(its)


def _quantization(brief: Brief) -> dict[str, Any]:
    its = brief.training
    if its.weight_format == "int8":
        return {"load_in_8bit": True}
    found: dict[str, Any] = {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": its.weight_format,
        "bnb_4bit_use_double_quant": its.double_quantization,
        "bnb_4bit_compute_dtype": HALF.get(its.precision, "float32"),
    }
    if fsdp(brief):
        # Shards need weights stored in the format of all others.
        found["bnb_4bit_quant_storage"] = HALF.get(its.precision, "float32")
    return found

"""run.yaml: what train.py does beside the trainer's arguments."""

from typing import Any

from planner.launch.accelerate.plan import (
    attention,
    fsdp,
    option,
    own_mesh,
    replicas,
    stack,
    with_trl,
)
from planner.launch.brief import Brief
from planner.models.linears import linears

GEMMS = {"qkv": ("qkv",), "proj": ("attention_out",), "fc1": ("fc1",), "fc2": ("fc2",)}
"""GEMMs of a block by the name that Megatron gives its linear layer. [text]"""
LATENT = ("q", "q_a", "q_b", "kv_a", "kv_b")
"""GEMMs that make queries, keys and values in latent attention. [text]"""
HALF = {"bf16": "bfloat16", "fp16": "float16", "fp8": "bfloat16"}
"""Formats of weights by precision. [text]"""


def run(brief: Brief) -> dict[str, Any]:
    """The content of run.yaml.

    Args:
        brief: The plan, without gaps. [-]

    Returns:
        Values by name. [-]
    """
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
    """Format that weights are loaded in; shards of transformers' mesh stay in it.

    Args:
        brief: The plan. [-]

    Returns:
        Name of a torch.dtype. [text]
    """
    sharded = own_mesh(brief) and brief.layout.zero_stage > 1
    if stack(brief) == "hf-amp" or (sharded and stack(brief) != "hf-bf16"):
        return "float32"
    return HALF.get(brief.training.precision, "float32")


def _distributed(brief: Brief) -> dict[str, Any]:
    """Transformers' own mesh; ZeRO 2 keeps the gathered weights of its layers."""
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
        "target_modules": targets(brief),
        "bias": "none",
        "task_type": "CAUSAL_LM",
    }
    if its.modules_to_save:
        found["modules_to_save"] = list(its.modules_to_save)
    return found


def targets(brief: Brief) -> str | list[str]:
    """Linear layers that carry an adapter, as the model's code names them.

    Args:
        brief: The plan. [-]

    Returns:
        Names, or all-linear; none of a name that the model lacks. [text]
    """
    its = brief.training.lora
    if its.targets == "all-linear":
        return "all-linear"
    family = brief.architecture.family
    there = [x for kind in brief.architecture.kinds for x in linears(kind, family)]
    found: dict[str, None] = {}
    for name in its.modules:
        gemms = GEMMS.get(name, ()) + (LATENT if name == "qkv" else ())
        shared = tuple(f"shared_{gemm}" for gemm in gemms)
        its_own = [x.name for x in there if x.name == name or x.gemm in gemms + shared]
        found |= dict.fromkeys(its_own)
    return list(found)


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

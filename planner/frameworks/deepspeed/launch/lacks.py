"""Features of a job that ds_config.json and its training script cannot express."""

from collections.abc import Iterator

from planner.frameworks.deepspeed.launch.known import VERSION
from planner.frameworks.deepspeed.limits import LIMITS
from planner.frameworks.transformers import (
    attention_lacks,
    sharing_lacks,
)
from planner.models.asked import Asked
from planner.models.layers.blocks import Attention
from planner.specs.frameworks.lacks import Lack, Writer, no_reference, other_rows
from planner.specs.training import FreezeSpec

OPTIMIZERS = {"adamw": "AdamW", "sgd": "SGD", "sgd-momentum": "SGD"}
"""optimizer.type by name; SGD is PyTorch's own. [text]"""
STAGED = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
"""Model types whose blocks the script puts into stages. [text]"""
ABSENT = ("grok-1", "kimi_k2", "nemotron-nas")
"""Model types that transformers 5.23 has no causal language model for. [text]"""
WIDE = ("minimax",)
"""Model types with fp32 buffers that their code multiplies by bf16 values. [text]"""
PRESETS = {
    "mixtral": "mixtral",
    "qwen3_moe": "qwen3_moe",
    "deepseek_v2": "deepseek_v2",
    "deepseek_v3": "deepseek_v3",
}
"""expert_parallel.preset_model by model type. [text]"""


def deepspeed(asked: Asked) -> Iterator[Lack]:
    """Features of a job that ds_config.json and its training script cannot express."""
    yield from no_reference(asked)
    what = "its script reads rows of one length"
    yield from other_rows(asked, ("max",), what)
    yield from _numbers(asked)
    yield from _training(asked)
    yield from _model(asked)
    yield from _mesh(asked)


def _numbers(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training, "spec.training."
    if its.precision not in LIMITS.precisions:
        allowed = ", ".join(LIMITS.precisions)
        yield Lack("no such format", f"{where}precision", its.precision, allowed)
    if its.state_bits not in (None, 32):
        yield Lack("no narrow moments", f"{where}state_bits", its.state_bits, "32")


def _training(asked: Asked) -> Iterator[Lack]:
    its, where = asked.training, "spec.training."
    if its.method != "full":
        allowed = "full; accelerate has adapters"
        yield Lack("no adapters", f"{where}method", its.method, allowed)
    if its.optimizer not in OPTIMIZERS:
        allowed = ", ".join(OPTIMIZERS)
        yield Lack("no such optimizer", f"{where}optimizer", its.optimizer, allowed)
    if its.document:
        yield Lack("no packed documents", f"{where}document", its.document)
    if its.optimizer_in_backward:
        yield Lack("no step in backward", f"{where}optimizer_in_backward", "true")
    if its.freeze != FreezeSpec():
        yield Lack("nothing is frozen", f"{where}freeze", "parts of the model")


def _model(asked: Asked) -> Iterator[Lack]:
    kind = asked.model_type
    if kind in ABSENT:
        yield Lack("transformers has no such model", "spec.model", kind)
    if kind not in STAGED:
        allowed = f"pp 1, or a model of {', '.join(STAGED)}"
        what = "its blocks are not put into stages"
        yield Lack(what, "layout.pp", allowed=allowed, when=lambda its: its.pp > 1)
    if kind not in PRESETS:
        allowed = f"ep 1, or a model of {', '.join(PRESETS)}"
        what = "AutoEP has no preset for its experts"
        yield Lack(what, "layout.ep", allowed=allowed, when=lambda its: its.ep > 1)
    if kind in WIDE:
        # At lower stages the engine casts the whole module, buffers too.
        yield Lack(
            "ZeRO 3 leaves the decays of lightning attention in fp32",
            "layout.zero_stage",
            allowed="0, 1, 2",
            when=lambda its: its.zero_stage == 3,
        )
    yield from attention_lacks(asked, "deepspeed")
    yield from sharing_lacks(asked, 2)
    if asked.model.mtp_layers:
        layers = f"{asked.model.mtp_layers} layers"
        yield Lack("no multi-token prediction", "spec.model", layers, "none")


def _mesh(asked: Asked) -> Iterator[Lack]:
    attention, node = asked.model.kinds[0].attention, asked.gpus_per_node
    groups = attention.heads
    if isinstance(attention, Attention):
        groups = attention.kv_heads
    yield Lack(
        "Ulysses divides key heads",
        "layout.cp",
        allowed=f"a divisor or a multiple of the {groups} key heads",
        when=lambda its: (its.cp > 1) & (groups % its.cp != 0) & (its.cp % groups != 0),
    )
    yield Lack(
        "nodes are filled whole",
        "layout.dp",
        when=lambda its: (its.gpus > node) & (its.gpus % node != 0),
    )


WRITER = Writer("deepspeed", "DeepSpeed", VERSION, deepspeed)
"""Files of DeepSpeed."""

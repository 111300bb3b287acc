"""Models that torchtitan's blocks make."""

from collections.abc import Iterator

from planner.frameworks.torchtitan.families import Builder, families
from planner.models.architecture import Architecture
from planner.models.asked import Asked
from planner.models.layers.blocks import (
    Attention,
    AttentionBlock,
    LatentAttention,
    LayerKind,
    Moe,
)
from planner.models.layers.rotary import scaling_of
from planner.specs.frameworks.lacks import Lack

_KEYS_AND_VALUES = 2
"""Matrices of an attention that makes its keys and its values. [1]"""


def model_lacks(asked: Asked) -> Iterator[Lack]:
    """Features of a model that no torchtitan model has."""
    name = asked.model.family
    if name not in families():
        known = "the families " + ", ".join(families())
        yield Lack("no model has such blocks", "spec.model", name, known)
        return
    for what in (*_block_lacks(asked.model), *_field_lacks(asked)):
        yield Lack(f"its {families()[name].builder} model has no {what}", *_at(name))


def _at(family: str) -> tuple[str, str, str]:
    return "spec.model", family, ""


def _block_lacks(model: Architecture) -> Iterator[str]:
    attentions = {kind.attention for kind in model.kinds}
    if len(attentions) > 1:
        yield "layers whose attentions differ"
    if any(_odd(kind.attention) for kind in model.kinds):
        yield "biases, windows, sinks, gates or caps in attention, or scans"
    if any(kind.parallel or kind.norms != 2 for kind in model.kinds):
        yield "other halves than attention and MLP, a norm before each"
    if any(kind.norm != "rmsnorm" for kind in model.kinds):
        yield "LayerNorm"
    if model.embedding_norm or model.logit_cap is not None or model.learned_positions:
        yield "norm after the embedding, capped logits or learned positions"
    if any(kind.stream is not None for kind in model.kinds):
        yield "copies of the residual stream, or inputs of a layer's own"
    if any(not _plain(kind) for kind in model.kinds):
        yield "MLP without a gate, or with biases"
    yield from _mixture_lacks(model)


def _odd(block: AttentionBlock) -> bool:
    if not isinstance(block, Attention):
        return not isinstance(block, LatentAttention) or block.window is not None
    flags = (block.qkv_bias, block.out_bias, block.wide_qk_norm, block.sinks)
    bounds = (block.window, block.logit_cap)
    others = (block.output_gate, block.key_matrices != _KEYS_AND_VALUES)
    return any((*flags, *others)) or bounds != (None, None)


def _plain(kind: LayerKind) -> bool:
    shared = isinstance(kind.ffn, Moe) and kind.ffn.shared_gate
    return kind.ffn.gated and not kind.ffn.bias and not shared


def _mixture_lacks(model: Architecture) -> Iterator[str]:
    """Mixtures that DeepSeek's blocks alone have: dense layers, shared experts."""
    routed = [kind for kind in model.kinds if isinstance(kind.ffn, Moe)]
    if not routed or families()[model.family].builder == "deepseek_v3":
        return
    if len(model.kinds) > 1:
        yield "dense layers among layers with experts"
    if any(isinstance(kind.ffn, Moe) and kind.ffn.shared_ffn for kind in routed):
        yield "shared experts"


def _field_lacks(asked: Asked) -> Iterator[str]:
    """Features that only a model's fields tell: activation and rotary positions."""
    activation = asked.fields.get("hidden_act") or "silu"
    if activation != "silu":
        yield f"activation {activation}"
    kind, _ = scaling_of(asked.fields)
    module = module_of(asked.model)
    able = {"llama3": ("default", "llama3", "yarn"), "qwen3": ("default", "yarn")}
    if kind not in able.get(module, ("default", "yarn")):
        yield f"rotary scaling of kind {kind}"
    part = asked.fields.get("partial_rotary_factor")
    if part and float(str(part)) < 1:
        yield "positions on a part of a head"


def module_of(model: Architecture) -> Builder:
    """Module of torchtitan whose blocks a model has."""
    builder = families()[model.family].builder
    block = model.kinds[0].attention
    wide = isinstance(block, Attention) and block.heads * block.head_dim != block.hidden
    return "qwen3" if wide and builder == "llama3" else builder

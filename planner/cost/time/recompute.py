"""Time that the backward of a layer takes to run recomputed modules again."""

from dataclasses import replace

import numpy as np

from planner.cost.memory.attention_columns import key_share
from planner.cost.memory.recompute_modules import at_work, core_share, rebuilt
from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.adapters import adapters_beside
from planner.cost.pricing import Pricing
from planner.cost.streaming import memory_time
from planner.cost.time.columns import Context
from planner.cost.time.exchange import GemmTimes, tensor_exchange
from planner.cost.time.experts import expert_exchange
from planner.cost.time.operators import NORM_AGAIN, Operator, operators, shares
from planner.hardware.reading.quantities import Column, Seconds
from planner.models.layers.blocks import Attention, LayerKind, Mlp, Moe
from planner.specs.layouts.recompute import RecomputeKind

NORM_OUTPUTS = ("attention_norm_output", "ffn_norm_output")
"""Saved tensors that a norm makes. [text]"""


def module_time(
    context: Context,
    layer: LayerKind,
    kind: RecomputeKind,
    gemms: dict[str, GemmTimes],
) -> Column[Seconds]:
    """Time of the operators and collectives that recomputed modules run again.

    Products of the modules and the attention core come on top. Operators move the bytes
    of their forward; a norm moves 4 h, without the residual that is added. Operators
    take their share of the forward's launches, collectives their exposed time there.

    Args:
        gemms: Forward and backward of the layer's GEMMs by half and split. [s]

    Leaves out waits for the host inside recomputed experts.
    """
    again, share = _operators_again(layer, kind), shares(context)
    moved = context.meshes.zeros()
    for operator in again:
        moved = moved + operator.forward * share[operator.split]
    every = sum(1 for _ in operators(layer))
    kernels = context.pricing.profile.forward_operators * len(again) / every
    time = memory_time(context.pricing, moved, kernels)
    return time + _exchanges_again(context, layer, kind, gemms)


def skipped_gemm(pricing: Pricing, layer: LayerKind, kind: RecomputeKind) -> str:
    """Product at the end of a recomputed layer, where recomputation stops before it.

    The product's operands are the last tensors that the backward needs: ``fc2`` of a
    dense layer, of the shared experts where these run last. None where something behind
    it keeps its output: a norm, dropout, an adapter, a gate.

    Returns:
        Name of the GEMM; empty where all run again. [text]

    Source: PyTorch, torch.utils.checkpoint.set_checkpoint_early_stop; counted by
    tests/oracle/test_flops.py.
    """
    ffn = layer.ffn
    if isinstance(ffn, Mlp):
        name = "fc2" if ffn.ffn else ""
    else:
        last = ffn.shared_ffn and not (ffn.shared_gate or ffn.shared_first)
        name = "shared_fc2" if last else ""
    behind = layer.ends_in_norm or pricing.recipe.dropout_bytes > 0
    if not kind.stops_early or behind or adapters_beside(pricing, layer, name):
        return ""
    return name


def gemm_share(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, name: str
) -> float:
    """Share of a GEMM's forward that a kind of recompute runs again."""
    if kind.drops_key and name == "qkv":
        return key_share(layer)
    if name == skipped_gemm(pricing, layer, kind):
        return 0.0
    return kind.gemms.get(name, kind.gemms.get("*", 0.0))


def tensor_share(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> Floats:
    """Share of a layer's forward collectives over tensor ranks that run again.

    The reduction behind the last product is a half's second collective with sp, its
    only one without.
    """
    if skipped_gemm(pricing, layer, kind) != "fc2":
        return np.full(len(meshes), kind.collectives)
    halves = 1 if layer.parallel else 2
    last = 1.0 / (halves * (1 + meshes.sp))
    return kind.collectives * (1.0 - last)


def launch_share(layer: LayerKind, kind: RecomputeKind) -> float:
    """Share of a layer's forward kernels that its backward launches again.

    Of modules: products, core and memory-bound operators by number.
    """
    if not kind.modules:
        return kind.memory_ops
    gemms = [gemm.name for gemm in layer.gemms()]
    every = len(gemms) + 1 + sum(1 for _ in operators(layer))
    products = sum(kind.gemms.get(name, 0.0) for name in gemms)
    core, again = core_share(kind, layer), len(_operators_again(layer, kind))
    return (products + core + again) / every


def _operators_again(layer: LayerKind, kind: RecomputeKind) -> list[Operator]:
    """Memory-bound operators that run again, norms of dropped outputs among them."""
    names = {name for module in at_work(kind, layer) for name in module.operators}
    again = [operator for operator in operators(layer) if operator.name in names]
    norms = len(rebuilt(kind, layer).intersection(NORM_OUTPUTS))
    if norms:
        moved = NORM_AGAIN * layer.hidden * norms
        again.append(Operator("norms", "sequence", moved, 0.0))
    return again


def _exchanges_again(
    context: Context,
    layer: LayerKind,
    kind: RecomputeKind,
    gemms: dict[str, GemmTimes],
) -> Column[Seconds]:
    """Exposed time of the collectives that run again; tensor ranks' by half. [s]."""
    names = {name for module in at_work(kind, layer) for name in module.exchanges}
    time = context.meshes.zeros()
    if "experts" in names:
        half = _ffn_alone(layer)
        once, _ = tensor_exchange(context, half, gemms)
        return time + once + expert_exchange(context, layer)
    if "ffn" in names:
        half = _ffn_alone(layer)
        if isinstance(half.ffn, Moe):
            half = replace(half, ffn=half.ffn.shared)
        once, _ = tensor_exchange(context, half, gemms)
        return time + once
    return time


def _ffn_alone(layer: LayerKind) -> LayerKind:
    """The layer without its attention half."""
    nothing = Attention(layer.hidden, layer.attention.heads, layer.attention.heads, 0)
    return replace(layer, attention=nothing)

"""Time of one layer on one rank, by cause, for every mesh at once."""

from dataclasses import dataclass

import numpy as np

from planner.cost.kernels import added, cast_time, gemm_rate, gemm_time
from planner.cost.memory.activations import kept_bytes
from planner.cost.memory.recompute_modules import core_share
from planner.cost.meshes import Floats
from planner.cost.network.offload_copies import exposed_copies
from planner.cost.parameters.adapter_times import adapter_times
from planner.cost.parameters.adapters import is_frozen
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context, Parts
from planner.cost.time.context_parallel import context_exchange, ring_chunks
from planner.cost.time.exchange import GemmTimes, core_times, tensor_exchange
from planner.cost.time.experts import expert_exchange, expert_waits, shown_exchange
from planner.cost.time.gradients import HALF_PRECISION, gemm_shape, gemm_weight_time
from planner.cost.time.host_launch import launched
from planner.cost.time.operators import operator_times
from planner.cost.time.recompute import (
    gemm_share,
    launch_share,
    module_time,
    tensor_share,
)
from planner.models.layers.blocks import LayerKind, Moe
from planner.models.layers.parts import Gemm
from planner.specs.layouts.recompute import RecomputeKind


def layer_time(
    context: Context, layer: LayerKind, kind: RecomputeKind
) -> tuple[Parts, Parts]:
    """Forward and backward time of one layer under a kind of recompute.

    GEMMs, attention core and memory-bound operators add up; collectives add
    what is not hidden; recompute adds its share of the forward. Each pass lasts
    at least as long as the host takes to launch it. A layer below all that trains
    has no backward.

    Returns:
        Forward and backward, by cause. [s], shape (meshes,)
    """
    work = layer_work(context, layer)
    forward, backward = work.passes
    again = repeated(context, layer, kind)
    backward = backward.plus("recompute", added(again))
    routed = isinstance(layer.ffn, Moe)
    share = launch_share(layer, kind)
    chunks = ring_chunks(context, layer)
    passes = launched(
        context, forward, backward, routed=routed, again=share, chunks=chunks
    )
    if routed:
        own = _expert_work(context, layer, work.split_gemms)
        ahead, behind = expert_waits(context, layer, *own)
        passes = (
            passes[0].plus("expert_launches", ahead),
            passes[1].plus("expert_launches", behind),
        )
    if layer.role == "below":
        return passes[0], Parts().plus("compute", context.meshes.zeros())
    if not context.pricing.offload.activations:
        return passes
    return _with_copies(context, layer, kind, passes)


@dataclass(frozen=True)
class Work:
    """Time of a layer's work, whatever is recomputed. [s]."""

    gemms: dict[str, Floats]
    """Forward of each GEMM by name."""
    core: Floats
    operators: Floats
    split_gemms: dict[str, GemmTimes]
    """GEMMs by half and split, which exchanges run beside."""
    exchange: Floats
    repeated: Floats
    """Exchanges of a forward that is made again."""
    passes: tuple[Parts, Parts]


def layer_work(context: Context, layer: LayerKind) -> Work:
    """Work of a layer, worked out once for all kinds of recompute. [s]."""
    if layer not in context.known:
        context.known[layer] = _worked_out(context, layer)
    work: Work = context.known[layer]
    return work


def _worked_out(context: Context, layer: LayerKind) -> Work:
    """GEMMs, attention core, operators, and the exchanges beside them."""
    forward, backward = Parts(), Parts()
    products: dict[str, GemmTimes] = {}
    gemms = {gemm.name: gemm_times(context, layer, gemm) for gemm in layer.gemms()}
    for gemm in layer.gemms():
        _collect(products, gemm, *gemms[gemm.name])
    core, operators = core_times(context, layer), operator_times(context, layer)
    for ahead, behind in (*gemms.values(), core, operators):
        forward = forward.plus("compute", ahead)
        backward = backward.plus("compute", behind)
    exchange = tensor_exchange(context, layer, products)
    forward, backward, repeated = _communicate(
        context, layer, exchange, forward, backward
    )
    return Work(
        {name: ahead for name, (ahead, _) in gemms.items()},
        core[0],
        operators[0],
        products,
        exchange[0],
        repeated,
        (forward, backward),
    )


def repeated(
    context: Context, layer: LayerKind, kind: RecomputeKind
) -> dict[str, Floats]:
    """Time of what the backward makes again, in the order in which it adds up.

    Returns:
        Shares of the forward's parts by GEMM, core, operators and exchanges. [s],
        shape (meshes,)
    """
    work = layer_work(context, layer)
    again = {
        name: gemm_share(context.pricing, layer, kind, name) * ahead
        for name, ahead in work.gemms.items()
    }
    again["core"] = core_share(kind, layer) * work.core
    again["operators"] = kind.memory_ops * work.operators
    again["other_exchanges"] = kind.collectives * work.repeated
    split = tensor_share(context.pricing, layer, kind, context.meshes)
    again["tensor_exchange"] = split * work.exchange
    if kind.modules:
        again["modules"] = module_time(context, layer, kind, work.split_gemms)
    return again


def _with_copies(
    context: Context, layer: LayerKind, kind: RecomputeKind, passes: tuple[Parts, Parts]
) -> tuple[Parts, Parts]:
    """Add the exposed time of copies to the host and back."""
    saved = kept_bytes(context.pricing, layer, kind, context.meshes)
    forward, backward = (
        parts.plus(
            "offload_copies", exposed_copies(context.pricing, saved, parts.total)
        )
        for parts in passes
    )
    return forward, backward


def gemm_times(context: Context, layer: LayerKind, gemm: Gemm) -> tuple[Floats, Floats]:
    """Forward and backward (input and weight gradient) time of one GEMM. [s]."""
    forward, backward = gemm_terms(context, layer, gemm)
    return added(forward), added(backward)


def gemm_terms(
    context: Context, layer: LayerKind, gemm: Gemm
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Terms of :func:`gemm_times`, in the order in which they add up.

    Returns:
        Products, casts and adapters, forward and backward. [s], shape (meshes,)
    """
    if gemm.split.startswith("expert"):
        return _expert_terms(context, layer, gemm)
    rows, outputs, inputs = gemm_shape(context, gemm)
    pricing = context.pricing
    narrow = gemm.name not in HALF_PRECISION
    rate = gemm_rate(pricing, narrow=narrow)
    casts = [
        ours + theirs if narrow else context.meshes.zeros()
        for ours, theirs in zip(
            _casts(pricing, rows, outputs, inputs),
            _weight_casts(pricing, outputs * inputs),
            strict=True,
        )
    ]
    forward = {"product": gemm_time(rate, rows, outputs, inputs), "casts": casts[0]}
    backward = {
        "input_gradient": gemm_time(rate, rows, inputs, outputs),
        "casts": casts[1],
    }
    return _trained(context, layer, gemm, forward, backward)


def _trained(
    context: Context,
    layer: LayerKind,
    gemm: Gemm,
    forward: dict[str, Floats],
    backward: dict[str, Floats],
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Terms with those of the adapters, or of the weight gradient. [s]."""
    if is_frozen(context.pricing, layer):
        shape = gemm_shape(context, gemm)
        ahead, behind = adapter_times(context.pricing, layer, gemm, shape)
        return forward | {"adapters": ahead}, backward | {"adapters": behind}
    gradient = gemm_weight_time(context, layer, gemm)
    return forward, backward | {"weight_gradient": gradient}


def _casts(
    pricing: Pricing, rows: Floats, outputs: Floats, inputs: Floats
) -> tuple[Floats, Floats]:
    """Time to cast a GEMM's input forward, its output's gradient backward. [s]."""
    return cast_time(pricing, rows * inputs), cast_time(pricing, rows * outputs)


def _weight_casts(pricing: Pricing, weights: Floats) -> tuple[Floats, Floats]:
    """Time to cast a GEMM's weight each way, where none is kept quantised. [s]."""
    kept = pricing.recipe.keeps_fp8
    once = weights * 0.0 if kept else cast_time(pricing, weights)
    return once, once


def _expert_terms(
    context: Context, layer: LayerKind, gemm: Gemm
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Forward and backward terms of a routed GEMM: one launch over the local experts.

    Work and activations are of all copies; the weights of every local
    expert are read once.
    """
    assert isinstance(layer.ffn, Moe)
    local_experts = layer.ffn.experts / context.meshes.ep
    copies, outputs, inputs = gemm_shape(context, gemm)
    rate = gemm_rate(context.pricing, grouped=True)
    casts = _casts(context.pricing, copies, outputs, inputs)
    weights = rate.element * (local_experts - 1) * outputs * inputs / rate.bandwidth
    forward = {"product": gemm_time(rate, copies, outputs, inputs)}
    backward = {"input_gradient": gemm_time(rate, copies, inputs, outputs)}
    for side, cast in zip((forward, backward), casts, strict=True):
        side |= {"other_experts": weights, "casts": cast}
    return _trained(context, layer, gemm, forward, backward)


def _expert_work(
    context: Context, layer: LayerKind, gemms: dict[str, GemmTimes]
) -> tuple[GemmTimes, GemmTimes]:
    """Time of the experts' products, and of the casts of their inputs. [s]."""
    experts = [times for key, times in gemms.items() if " expert" in key]
    casts = [
        _casts(context.pricing, *gemm_shape(context, gemm))
        for gemm in layer.gemms()
        if gemm.split.startswith("expert")
    ]
    (ahead, behind), (cast, back) = (
        np.sum(times, axis=0) for times in (experts, casts)
    )
    return (ahead - cast, behind - back), (cast, back)


def _collect(
    gemms: dict[str, GemmTimes], gemm: Gemm, ahead: Floats, behind: Floats
) -> None:
    """Add a GEMM to the GEMMs of its half and split, which exchanges run beside."""
    key = f"{gemm.region} {gemm.split}"
    sofar = gemms.get(key, (np.zeros(len(ahead)), np.zeros(len(ahead))))
    gemms[key] = (sofar[0] + ahead, sofar[1] + behind)


def _communicate(
    context: Context,
    layer: LayerKind,
    exchange: tuple[Floats, Floats],
    forward: Parts,
    backward: Parts,
) -> tuple[Parts, Parts, Floats]:
    """Add exposed collectives; also those beside tensor ranks' that may run again."""
    once, back = exchange
    ahead, behind = context_exchange(context, layer)
    forward = forward.plus("tp_comm", once).plus("cp_comm", ahead)
    backward = backward.plus("tp_comm", back).plus("cp_comm", behind)
    dealt = expert_exchange(context, layer)
    shown = shown_exchange(context, dealt, forward.total + backward.total)
    forward = forward.plus("ep_comm", shown)
    return forward, backward.plus("ep_comm", shown), ahead + dealt

"""Terms of the compute and of the recomputation of one layer."""

import numpy as np

from planner.cost.attention import AttentionPace, attention_level, attention_paces
from planner.cost.kernels import is_unfused
from planner.cost.meshes import Floats
from planner.cost.reference import reference_passes
from planner.cost.streaming import memory_time, operator_latency, stream_rate
from planner.cost.time.columns import Context
from planner.cost.time.exchange import core_case, core_times
from planner.cost.time.layers import layer_work, repeated
from planner.cost.time.operators import operators, shares, sorting_bytes
from planner.cost.time.scans import scan_sources
from planner.cost.why.facts import (
    attention_sources,
    attention_stack,
    in_force,
    memory_sources,
)
from planner.cost.why.products import layer_product
from planner.cost.why.terms import Term
from planner.models.layers.blocks import LayerKind, ScanBlock
from planner.specs.layouts.recompute import RecomputeKind

AGAIN = {
    "core": "attention core",
    "operators": "memory-bound operators",
    "other_exchanges": "exchanges of experts and context ranks",
    "tensor_exchange": "exchanges of tensor ranks",
    "modules": "operators and exchanges of modules",
}
"""Part of a forward that runs again to its title; GEMMs have names. [text]"""


def layer_compute(context: Context, layer: LayerKind, *, forwards: int = 0) -> Term:
    """Terms of the compute of one layer and micro-batch.

    Returns:
        Products, attention core, memory-bound operators. [s]
    """
    ahead = forwards or reference_passes(context.pricing)
    parts = [layer_product(context, layer, gemm, ahead) for gemm in layer.gemms()]
    parts += [_core(context, layer, ahead), _operators(context, layer, ahead)]
    return Term.of_parts("layer", "layer", parts)


def layer_recompute(context: Context, layer: LayerKind, kind: RecomputeKind) -> Term:
    """Terms of what the backward of one layer makes again.

    Returns:
        Shares of the forward by part. [s]
    """
    work, back = layer_work(context, layer), float(layer.role != "below")
    own = work.gemms | {
        "core": work.core,
        "operators": work.operators,
        "other_exchanges": work.repeated,
        "tensor_exchange": work.exchange,
    }
    parts = [
        _share(name, back * float(time[0]), own.get(name), kind.name)
        for name, time in repeated(context, layer, kind).items()
    ]
    return Term.of_parts("layer", "layer", parts)


def _share(name: str, again: float, forward: Floats | None, kind: str) -> Term:
    """Part of a forward that runs again; modules' own kernels are no such part."""
    numbers, formula = {}, f"operators and exchanges of the modules in {kind}"
    if forward is not None:
        first = float(forward[0])
        share = again / first if first else 0.0
        numbers, formula = {"share": share, "forward": first}, "share * forward"
    return Term(
        name=name,
        title=f"{AGAIN.get(name, f'GEMM {name}')} again",
        value=again,
        formula=formula,
        numbers=numbers,
    )


def _core(context: Context, layer: LayerKind, forwards: int) -> Term:
    """The attention core, both ways."""
    ahead, behind = (float(time[0]) for time in core_times(context, layer))
    behind *= layer.role != "below"
    if isinstance(layer.attention, ScanBlock) or is_unfused(context.pricing):
        parts = _plain_core(context, ahead, behind, forwards)
    else:
        parts = _fused_core(context, layer, (ahead, behind), forwards)
    return Term.of_parts("core", "attention core", parts)


def _plain_core(
    context: Context, ahead: float, behind: float, forwards: int
) -> list[Term]:
    """A scan, or explicit scores: two leaves."""
    pricing = context.pricing
    scans = scan_sources(pricing)
    formula = "work / rate + wait per token + launch"
    if not scans:
        formula = "FLOPs / GEMM rate + bytes of scores / (efficiency W)"
    both = ("forward", ahead, forwards), ("backward", behind, 1)
    return [
        Term(
            name=name,
            title=f"{name} of the core",
            value=value,
            formula=formula,
            source=scans or memory_sources(pricing),
            stack=attention_stack(pricing),
        ).times(times)
        for name, value, times in both
    ]


def _fused_core(
    context: Context, layer: LayerKind, times: tuple[float, float], forwards: int
) -> list[Term]:
    """A fused kernel by its measured curve, and a sparse indexer beside it."""
    case, pricing = core_case(context, layer), context.pricing
    flops = float(np.ravel(case["flops"])[0])
    paces = attention_paces(
        pricing, span=case["span"], blocks=case["blocks"], head_dim=case["head_dim"]
    )
    parts: list[Term] = []
    for name, total, pace, count in zip(
        ("forward", "backward"), times, paces, (forwards, 1), strict=True
    ):
        numbers = _core_numbers(context, flops, pace)
        time = numbers["c"] * flops / (numbers["rate"] * numbers["level"])
        time *= numbers["emptier"] * bool(total)
        curve = Term(
            name=name,
            title=f"{name} kernel",
            value=time,
            formula="c * F / (rate * level) * emptier",
            numbers=numbers,
            source=attention_sources(pricing, case["head_dim"]),
            stack=attention_stack(pricing),
        )
        parts.append(curve.times(count))
        if abs(total - time) > 1e-12 * total:
            index = Term(
                name=f"index_{name}",
                title=f"{name} of the sparse indexer, and what its core saves",
                value=total - time,
                formula="products, scores and top-k of the indexer",
            )
            parts.append(index.times(count))
    return parts


def _core_numbers(
    context: Context, flops: float, pace: AttentionPace
) -> dict[str, float]:
    """Symbols of the fused core's formula."""
    return {
        "F": flops,
        "c": pace.factor,
        "rate": float(np.ravel(pace.rate)[0]),
        "level": attention_level(context.pricing),
        "emptier": float(np.ravel(pace.emptier)[0]),
    }


def _operators(context: Context, layer: LayerKind, forwards: int) -> Term:
    """Memory-bound operators by name, and the starts of their kernels."""
    pricing, profile = context.pricing, context.pricing.profile
    share, back = shares(context), float(layer.role != "below")
    moved = {
        f"{operator.name}": (
            float(share[operator.split][0]),
            forwards * operator.forward + back * operator.backward,
        )
        for operator in operators(layer)
    }
    sorting = float(sorting_bytes(context, layer)[0])
    moved["sorting"] = (1.0, sorting * (forwards + back))
    parts = [_moved(context, name, *size) for name, size in moved.items()]
    starts = forwards * profile.forward_operators + back * profile.backward_operators
    latency = operator_latency(pricing)
    launch = Term(
        name="starts",
        title="starts of kernels",
        value=starts * latency,
        formula="n * latency",
        numbers={"n": starts, "latency": latency},
        source=memory_sources(pricing)[:1],
        stack=in_force(pricing, "forward_operators", "backward_operators", "latency"),
    )
    return Term.of_parts("operators", "memory-bound operators", [*parts, launch])


def _moved(context: Context, name: str, tokens: float, token_bytes: float) -> Term:
    """Bytes of one operator through memory, all passes."""
    pricing = context.pricing
    value = memory_time(pricing, np.array([tokens * token_bytes]), 0)
    return Term(
        name=name,
        title=name.replace("_", " "),
        value=float(value[0]),
        formula="memory_traffic * tokens * b / (efficiency * W)",
        numbers={
            "memory_traffic": pricing.profile.memory_traffic,
            "tokens": tokens,
            "b": token_bytes,
            "efficiency": pricing.calibration.memory.efficiency,
            "W": stream_rate(pricing) / pricing.calibration.memory.efficiency,
        },
        source=memory_sources(pricing),
        stack=in_force(pricing, "memory_traffic"),
    )

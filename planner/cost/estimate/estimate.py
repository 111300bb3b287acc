"""The estimate of one complete layout: time by cause, memory by rank."""

from collections.abc import Iterable, Sequence

from planner.cost.estimate.breakdown import kernel_share, time_breakdown, work_by_rank
from planner.cost.estimate.footprint import cached_of, stage_memories
from planner.cost.estimate.host_memory import host_assumptions, host_memory
from planner.cost.estimate.padding import padding_assumptions, padding_estimate
from planner.cost.estimate.pricing import Priced, price
from planner.cost.estimate.stack import set_by_hand, stack_in_force
from planner.cost.memory.buffers import device_bytes
from planner.cost.memory.chance import chance, times
from planner.cost.memory.recompute_modules import core_share
from planner.cost.pricing import Pricing
from planner.cost.routing import assumed_routing
from planner.cost.time.recompute import gemm_share
from planner.cost.time.scans import scan_sources
from planner.cost.time.sparse import sparse_sources
from planner.cost.workload import Workload
from planner.models.architecture import AttentionConvention
from planner.models.layers.blocks import LayerKind
from planner.specs.answer.estimate import (
    RESUME,
    ByConvention,
    Estimate,
    Interval,
    MemoryEstimate,
    ResumeEstimate,
    StageMemory,
)
from planner.specs.layouts.layout import Layout

GIB = 2**30


def estimate(workload: Workload, layout: Layout) -> Estimate:
    """Predict time and memory of one layout."""
    priced = price(workload, layout)
    pricing, step = priced.pricing, priced.step_s
    tokens = workload.training.step_tokens / step
    flops = _model_tflops(workload, tokens / layout.gpus)
    peak = _mean_peak(pricing, layout) / 1e12
    work = work_by_rank(priced.table, priced.costs, priced.counts)
    breakdown, others = time_breakdown(priced.table, priced.costs, priced.counts, work)
    memory = memory_estimate(priced)
    return Estimate(
        step_time_s=Interval.around(step, pricing.uncertainty.time),
        tokens_per_s_per_gpu=tokens / layout.gpus,
        tokens_per_s=tokens,
        model_tflops_per_gpu=flops,
        mfu=ByConvention(
            full_attention=flops.full_attention / peak,
            causal_attention=flops.causal_attention / peak,
        ),
        hfu=_hardware_tflops(priced, tokens / layout.gpus) / peak,
        time_breakdown_s=breakdown,
        other_by_cause_s=others,
        kernel_share=kernel_share(priced.table, priced.costs, work, step),
        memory=memory,
        padding=padding_estimate(pricing, layout, step),
        stack=stack_in_force(pricing),
        assumptions=(
            *idle_nodes(pricing, layout),
            *assumptions(pricing),
            *host_assumptions(priced.table, memory),
        ),
    )


def _mean_peak(pricing: Pricing, layout: Layout) -> float:
    """Dense peak of the GPUs used, their mean where pools differ. [FLOP/s]."""
    if not pricing.mixed:
        return pricing.peak_flops
    pairs = zip(pricing.parts, layout.pools, strict=True)
    total = sum(float(part.peak_flops) * layout.gpus_on(pool) for part, pool in pairs)
    return total / layout.gpus


def _model_tflops(workload: Workload, tokens_per_s: float) -> ByConvention:
    """Model FLOPs of so many tokens under both attention conventions. [TFLOP/s]."""
    per_gpu = tokens_per_s / 1e12
    return ByConvention(
        full_attention=per_gpu * flops_per_token(workload, "full"),
        causal_attention=per_gpu * flops_per_token(workload, "causal"),
    )


def flops_per_token(workload: Workload, attention: AttentionConvention) -> float:
    """Training FLOPs per token: ``6 N_mm + 3 F_core``, or ``4 N_mm + 3 F_core``.

    A frozen linear has no weight gradient: a third of its work is not there; a
    layer below all that trains has its forward alone, ``2 N_mm + F_core``.

    Args:
        attention: "full" counts every score, "causal" those the mask leaves.

    Returns:
        FLOPs per token. [FLOP]

    Leaves out the adapters, below one per cent, and recomputation.
    """
    seq_len, model = workload.training.counted_span, workload.model
    flops = model.model_flops_per_token(seq_len, attention)
    head = 2.0 * model.vocab * model.hidden
    if workload.training.frozen:
        flops -= 2.0 * model.matmul_parameters - head
    if not workload.training.trains_head:
        flops -= head
    return flops - _frozen_flops(workload, attention)


def _frozen_flops(workload: Workload, attention: AttentionConvention) -> float:
    """FLOPs per token that layers which do not train leave out. [FLOP]."""
    model, adapted = workload.model, workload.training.frozen
    total = 0.0
    for kind, count in model.runs:
        weights = 0.0 if adapted else 2.0 * kind.matmul_parameters
        layer_flops = model.layer_flops(kind, workload.training.counted_span, attention)
        frozen = 2.0 * kind.matmul_parameters if adapted else 0.0
        passed = 2.0 * layer_flops - frozen
        left = {"trained": 0.0, "passed": weights, "below": passed}
        total += count * left[kind.role]
    return total


def _hardware_tflops(priced: Priced, tokens_per_s: float) -> float:
    """Full-attention FLOPs with recomputed forwards counted. [TFLOP/s]."""
    pricing = priced.pricing
    per_token = flops_per_token(pricing, "full")
    for kind, layer in enumerate(pricing.kinds):
        for entry, name in enumerate(priced.costs.menu):
            layers = int(priced.counts[:, kind, entry].sum())
            per_token += layers * _again(pricing, layer, name)
    return per_token * tokens_per_s / 1e12


def _again(pricing: Pricing, layer: LayerKind, name: str) -> float:
    """FLOPs per token that one layer runs again under a recompute kind."""
    kind = pricing.recipe.kind(name)
    span = pricing.training.counted_span
    keys = layer.attention.attended(span, causal=False)
    gemms = sum(
        gemm_share(pricing, layer, kind, gemm.name) * 2 * gemm.weights_per_token
        for gemm in layer.gemms()
    )
    core = layer.attention.core_flops(keys)
    core += layer.attention.index_flops(span, causal=False)
    mixed = layer.stream.mixed_flops if layer.stream else 0
    return gemms + core_share(kind, layer) * core + kind.memory_ops * mixed


def memory_estimate(priced: Priced) -> MemoryEstimate:
    """Peak memory over the ranks and the verdict. [GiB]."""
    stages = stage_memories(priced.table, priced.costs, priced.counts)
    device, capacity, risk = _peak(priced, stages)
    band = priced.pricing.uncertainty.allocated
    return MemoryEstimate(
        peak_allocated_gib=_largest(
            Interval.around(stage.allocated, band, known=stage.counted)
            for stage in stages
        ),
        peak_reserved_gib=max(
            stage.allocated + stage.fragmentation for stage in stages
        ),
        peak_device_gib=device,
        capacity_gib=capacity,
        oom_probability=risk,
        verdict=device.verdict(capacity),
        stages=stages,
        host=host_memory(priced.table, priced.costs, priced.counts, priced.layout),
        resume=_resume(priced, stages),
    )


def _peak(
    priced: Priced, stages: Sequence[StageMemory]
) -> tuple[Interval, float, float]:
    """Device memory of the likeliest pool to run out, its capacity [GiB], the risk."""
    parts = priced.pricing.parts

    def home(stage: StageMemory) -> Pricing:
        return parts[priced.costs.pool(stage.stage)]

    def fullness(stage: StageMemory) -> tuple[float, float, float]:
        there = home(stage)
        capacity, risk = there.gpu.memory_capacity, _oom_probability(there, stage)
        return risk, stage.device / capacity, stage.allocated / capacity

    fullest = max(stages, key=fullness)
    worst = home(fullest)
    cached = cached_of(priced.table, priced.costs, priced.counts)
    device = _largest(
        _device_interval(worst, stage, cached)
        for stage in stages
        if home(stage) is worst
    )
    return device, worst.gpu.memory_capacity / GIB, fullness(fullest)[0]


def _resume(priced: Priced, stages: Sequence[StageMemory]) -> ResumeEstimate | None:
    """The resume from a checkpoint, where some rank then needs more than it trains."""
    loading = [stage.at(RESUME) for stage in stages]
    pairs = zip(loading, stages, strict=True)
    recipe = priced.pricing.recipe
    if not recipe.resume_copies or all(a.allocated < b.allocated for a, b in pairs):
        return None
    device, capacity, risk = _peak(priced, loading)
    return ResumeEstimate(
        moment=RESUME,
        peak_device_gib=device,
        oom_probability=risk,
        verdict=device.verdict(capacity),
        advice=recipe.resume_advice,
    )


def _largest(intervals: Iterable[Interval]) -> Interval:
    """Interval of the largest of several values, end by end."""
    every = list(intervals)
    return Interval(
        value=max(interval.value for interval in every),
        low=max(interval.low for interval in every),
        high=max(interval.high for interval in every),
    )


def oom_probability(pricing: Pricing, stages: Sequence[StageMemory]) -> float:
    """Probability that a plan on GPUs of one kind needs more than it has room for."""
    return max(_oom_probability(pricing, stage) for stage in stages)


def _oom_probability(pricing: Pricing, stage: StageMemory) -> float:
    """Probability that a rank needs more than its GPU has, caches given back. [1]."""
    return chance(pricing, _needed(pricing, stage), stage.counted * GIB)


def _needed(pricing: Pricing, stage: StageMemory) -> float:
    """Memory of a rank, caches given back. [B]."""
    fixed = stage.communication + stage.context
    return (stage.allocated / pricing.profile.packing + fixed) * GIB


def times_fitting(pricing: Pricing, stages: Sequence[StageMemory]) -> float:
    """Multiple of the uncertain memory that every rank has room for.

    Returns:
        Of the fullest rank; 0 where the counted states alone are too much. [1]
    """
    return min(
        times(pricing, _needed(pricing, stage), stage.counted * GIB) for stage in stages
    )


def _device_interval(
    pricing: Pricing, stage: StageMemory, cached: float | None
) -> Interval:
    """Device memory under both bounds of its band, beyond the states. [GiB].

    Parameters times bytes are counted: no band changes them.
    """
    fixed = (stage.communication + stage.context) * GIB
    band, known = pricing.uncertainty.device, stage.counted * GIB
    low, high = (
        device_bytes(
            pricing, stage.allocated * GIB, fixed, scale, cached=cached, known=known
        )
        / GIB
        for scale in (band.low, band.high)
    )
    return Interval(value=stage.device, low=low, high=high)


def idle_nodes(pricing: Pricing, layout: Layout) -> tuple[str, ...]:
    """Describe the GPUs in service that a layout leaves idle."""
    used, there = layout.gpus, pricing.fleet_gpus
    mixed = ["MFU is of the summed peak of the GPUs used"] if pricing.mixed else []
    if used == there:
        return tuple(mixed)
    return (
        f"uses {used:,} of {there:,} GPUs in service, {idle_words(pricing, layout)}: "
        "rates per GPU and MFU are over the GPUs used",
        *mixed,
    )


def idle_words(workload: Workload, layout: Layout) -> str:
    """Count the nodes, or GPUs, of each pool that a layout leaves idle, in words."""
    hosted = {pool.pool: layout.gpus_on(pool) for pool in layout.pools}
    fleet = [(pool.topology, pool.name) for pool in workload.pools]
    parts = []
    for topology, name in fleet or [(workload.topology, "")]:
        idle = topology.gpus - (hosted.get(name, 0) if fleet else layout.gpus)
        nodes = idle // topology.cluster.node.gpus_per_node
        what = f"{nodes:,} nodes" if nodes else f"{idle} GPUs"
        parts += [f"{what} of {name}" if fleet else what] if idle else []
    return " and ".join(parts) + " idle"


def _unmeasured(part: Pricing, section: str) -> str:
    """Remark on a calibration that another GPU lends."""
    borrowed = section in part.calibration.borrowed
    return " (never measured on it)" if borrowed else ""


def assumptions(pricing: Pricing) -> tuple[str, ...]:
    """List what an estimate rests on and what it leaves out, in words."""
    borrowed = [
        f"{section} of {part.gpu.name}{_unmeasured(part, section)}: {why}"
        for part in pricing.parts
        for section, why in part.calibration.transferred.items()
    ]
    nics = [part.topology.cluster.nic.fabric or "" for part in pricing.parts]
    fabric = " and ".join(dict.fromkeys(nics))
    return (
        *set_by_hand(pricing),
        pricing.uncertainty.why,
        f"network efficiencies of {fabric} are defaults, not measured on this cluster",
        *borrowed,
        *scan_sources(pricing),
        *sparse_sources(pricing),
        *assumed_routing(pricing),
        *padding_assumptions(pricing),
        "left out: data loading, logging, evaluation, checkpoints, first iterations",
    )

"""Why a plan won, why another is slower, why nothing fits: in words."""

from collections.abc import Sequence

import numpy as np

from planner.cost.estimate import memory_estimate, price
from planner.cost.layouts import layout_of
from planner.cost.workload import Workload
from planner.search.best_first import SearchOutcome
from planner.search.paths import even_counts, in_class
from planner.specs.estimate import Estimate, StageMemory
from planner.specs.layout import Layout
from planner.specs.result import Explanation, RankedPlan

CAUSE_WORDS = {
    "compute": "kernels",
    "tp_comm": "tensor-parallel exchange",
    "cp_comm": "context-parallel exchange",
    "ep_comm": "expert exchange",
    "pp_comm": "stage-to-stage sends",
    "dp_comm": "gradient and parameter exchange",
    "bubble": "pipeline bubble",
    "recompute": "recompute",
    "optimizer": "optimizer step",
    "straggler": "stragglers",
    "other": "other",
}
SHOWN = 0.0005
"""Differences below this share of the step go unmentioned. [1]"""
TRIED_WHEN_INFEASIBLE = 64
"""Candidates looked at for the smallest footprint. [1]"""


def _differences(best: Estimate, other: Estimate) -> list[tuple[str, float]]:
    """Causes by how much longer they take in *other*, largest first. [1]."""
    step = best.step_time_s.value
    ours, theirs = best.time_breakdown_s, other.time_breakdown_s
    pairs = [
        (cause, (getattr(theirs, cause) - getattr(ours, cause)) / step)
        for cause in CAUSE_WORDS
    ]
    return sorted(pairs, key=lambda pair: -pair[1])


def why_slower(best: Estimate, other: Estimate) -> str:
    """Name what costs more, and what it buys back.

    Args:
        best: The faster plan.
        other: The slower plan.

    Returns:
        Half a sentence. [text]
    """
    changed = _differences(best, other)
    worse = [f"{CAUSE_WORDS[c]} +{d:.1%}" for c, d in changed[:2] if d > SHOWN]
    better = [f"{CAUSE_WORDS[c]} {d:.1%}" for c, d in changed[-1:] if d < -SHOWN]
    return ", ".join(worse + better) or "equal in every cause"


def explanation(plans: Sequence[RankedPlan]) -> Explanation:
    """Say why the first plan won and what binds it.

    Args:
        plans: Plans, best first; may be empty.

    Returns:
        Two sentences and the binding resources.
    """
    if not plans:
        return Explanation()
    best = plans[0].estimate
    return Explanation(binding=_binding(best), runner_up=_runner_up(plans))


def _runner_up(plans: Sequence[RankedPlan]) -> str:
    if len(plans) < 2:
        return "No other set of degrees fits, or none was close enough to list."
    best, second = plans[0], plans[1]
    changes = _changes(best.layout, second.layout)
    return (
        f"It beats {changes} by {second.slower:.2%}, which would pay "
        f"{second.why} of the step."
    )


def _changes(best: Layout, other: Layout) -> str:
    """The degrees in which two layouts differ, as the other has them."""
    axes = (
        "tp",
        "sp",
        "pp",
        "vpp",
        "cp",
        "ep",
        "etp",
        "dp",
        "dp_shard",
        "zero_stage",
        "micro_batch",
        "order",
    )
    differing = [
        f"{axis} {getattr(other, axis)}"
        for axis in axes
        if getattr(best, axis) != getattr(other, axis)
    ]
    if _kinds(best) != _kinds(other):
        differing.append(f"recompute {_kinds(other)}")
    return ", ".join(differing) or "its own variants"


def _kinds(layout: Layout) -> str:
    names = {part.kind for stage in layout.stages for part in stage.recompute}
    return "+".join(sorted(names)) or "none"


def _binding(best: Estimate) -> tuple[str, ...]:
    """The fullest rank and the largest costs beside the kernels."""
    memory = best.memory
    worst: StageMemory = max(memory.stages, key=lambda stage: stage.device)
    parts = {
        "activations": worst.activations,
        "weights": worst.weights,
        "gradients": worst.gradients,
        "optimizer states": worst.optimizer,
        "transients": worst.transient,
    }
    largest = max(parts, key=lambda name: parts[name])
    step = best.step_time_s.value
    times = best.time_breakdown_s.model_dump()
    costs = sorted(
        ((cause, time / step) for cause, time in times.items() if cause != "compute"),
        key=lambda pair: -pair[1],
    )
    named = ", ".join(f"{CAUSE_WORDS[c]} {s:.1%}" for c, s in costs[:3] if s > SHOWN)
    return (
        f"Stage {worst.stage} is the fullest, {worst.device:.1f} of "
        f"{memory.capacity_gib:.1f} GiB, most of it {largest} "
        f"({parts[largest]:.1f} GiB); beside the kernels "
        f"({times['compute'] / step:.1%} of the step) it pays {named or 'nothing'}.",
    )


def infeasibility(outcomes: Sequence[SearchOutcome]) -> tuple[str, ...]:
    """Name the smallest footprint reached, and what would make it fit.

    Args:
        outcomes: Finished searches without a plan.

    Returns:
        Sentences. [text]
    """
    tightest = min(
        (_tightest(outcome) for outcome in outcomes if len(outcome.space)),
        key=lambda found: found[0],
    )
    needed, capacity, layout, stage, workload = tightest
    kind = _kinds(layout)
    sentences = [
        f"{sum(len(outcome.space) for outcome in outcomes):,} legal layouts, none "
        f"fits {capacity:.1f} GiB.",
        f"The tightest reaches {needed:.1f} GiB on stage {stage.stage}: tp {layout.tp},"
        f" pp {layout.pp}, cp {layout.cp}, dp {layout.dp}, ZeRO {layout.zero_stage}, "
        f"micro-batch {layout.micro_batch}, recompute {kind}.",
    ]
    return (*sentences, *_remedies(workload, layout, stage, needed / capacity))


def _tightest(
    outcome: SearchOutcome,
) -> tuple[float, float, Layout, StageMemory, Workload]:
    """Exact footprint of the candidates with the least states and activations."""
    table, space = outcome.table, outcome.space
    mesh = space.mesh
    pp = table.meshes.pp[mesh]
    entry = np.maximum(space.menu, 0)
    states = sum(
        count * table.units[kind].static for kind, count in table.workload.runs
    )
    kept = sum(count * table.saved[kind] for kind, count in table.workload.runs)
    ends = table.embedding.unit.static + table.head.unit.static
    depth = np.minimum(table.meshes.micro_batches[mesh], pp)
    rough = (np.asarray(states)[mesh] + np.asarray(kept)[entry, mesh] * depth) / pp
    rough = rough + ends[mesh] + table.transient.max(axis=0)[entry, mesh]
    rough = rough - table.budget[mesh]
    best = np.argsort(rough, kind="stable")[:TRIED_WHEN_INFEASIBLE]
    found = [_footprint(outcome, int(candidate)) for candidate in best]
    return min((f for f in found if f is not None), key=lambda f: f[0])


def _footprint(
    outcome: SearchOutcome, candidate: int
) -> tuple[float, float, Layout, StageMemory, Workload] | None:
    table, space = outcome.table, outcome.space
    row, vpp = int(space.mesh[candidate]), int(space.vpp[candidate])
    entry = max(int(space.menu[candidate]), 0)
    costs = table.stage_costs(
        row, schedule=space.schedule(candidate), vpp=vpp, menu=(entry,)
    )
    counts = even_counts(costs)
    if not in_class(costs, counts):
        return None
    layout = layout_of(
        table.workload,
        space.meshes,
        row,
        vpp=vpp,
        menu=costs.menu,
        counts=counts,
    )
    memory = memory_estimate(price(table.workload, layout))
    worst = max(memory.stages, key=lambda stage: stage.device)
    return worst.device, memory.capacity_gib, layout, worst, table.workload


def _remedies(
    workload: Workload, layout: Layout, stage: StageMemory, excess: float
) -> tuple[str, ...]:
    """What the fullest rank is full of decides what helps."""
    states = stage.weights + stage.gradients + stage.optimizer
    gpus = workload.gpus
    if states > stage.activations + stage.transient:
        more = (
            f"about {int(np.ceil(gpus * excess))} GPUs of this size instead of {gpus}"
        )
        return (f"States are {states:.1f} GiB of it: {more} would hold them.",)
    limits = workload.search.limits()
    freed = ", ".join(f"{axis} {value}" for axis, value in limits.items())
    if freed:
        return (f"Activations and transients fill it: loosen the limits on {freed}.",)
    longer = workload.training.seq_len // 2
    return (
        f"Activations and transients fill it: sequences of {longer} tokens or GPUs "
        f"with {excess:.1f} times the memory would fit (cp is {layout.cp}).",
    )

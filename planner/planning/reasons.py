"""Explains in words why a plan won and why another is slower."""

from collections.abc import Sequence

from planner.specs.answer.estimate import (
    WAIT_WORDS,
    Estimate,
    MemoryEstimate,
    StageMemory,
)
from planner.specs.answer.result import Explanation, RankedPlan
from planner.specs.counted import counted
from planner.specs.layouts.layout_text import degrees_changed
from planner.specs.layouts.offload import offload_text

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
    **WAIT_WORDS,
}
CATEGORIES = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "activations",
    "transient": "transients",
    "communication": "communication",
    "fragmentation": "fragmentation",
    "context": "context",
}
"""Categories of memory with their words; they add up to what the device reports."""
NO_DIFFERENCE = "equal in every cause"
SHOWN = 0.0005
"""Differences below this share of the step go unmentioned. [1]"""


def gpus_words(gpus: int, per_node: int = 0) -> str:
    """A number of GPUs in words, and of the nodes that they are in."""
    words = counted(gpus, "GPU")
    if not per_node:
        return words
    nodes = gpus // per_node
    if gpus % per_node:
        where = f"{-(-gpus // per_node):,} nodes" if nodes else f"a node of {per_node}"
        return f"{words} (of {where})"
    return f"{words} ({counted(nodes, 'node')} of {per_node})"


def time_terms(best: Estimate, other: Estimate) -> list[tuple[str, float, float]]:
    """Causes by how much longer they take in another plan, the largest first.

    Returns:
        Cause, time in the plan, time in the other; differences add up to that of the
        steps. [s], shape (causes,)
    """
    ours, theirs = best.causes_s, other.causes_s
    terms = [
        (cause, ours.get(cause, 0.0), theirs.get(cause, 0.0)) for cause in CAUSE_WORDS
    ]
    return sorted(terms, key=lambda term: term[1] - term[2])


def memory_terms(best: Estimate, other: Estimate) -> list[tuple[str, float, float]]:
    """Categories of the fullest rank by how much more another plan holds.

    Returns:
        Category, memory in the plan, memory in the other; differences add up to that
        of the device peaks. [GiB], shape (categories,)
    """
    ours, theirs = _fullest(best.memory), _fullest(other.memory)
    terms = [(name, getattr(ours, name), getattr(theirs, name)) for name in CATEGORIES]
    return sorted(terms, key=lambda term: term[1] - term[2])


def why_slower(best: Estimate, other: Estimate) -> str:
    """Name the causes that cost the slower plan more, and the cause that costs less."""
    step = best.step_time_s.value
    changed = [(cause, (b - a) / step) for cause, a, b in time_terms(best, other)]
    worse = [f"{CAUSE_WORDS[c]} +{d:.1%}" for c, d in changed[:2] if d > SHOWN]
    better = [f"{CAUSE_WORDS[c]} {d:.1%}" for c, d in changed[-1:] if d < -SHOWN]
    return ", ".join(worse + better) or NO_DIFFERENCE


def explanation(plans: Sequence[RankedPlan]) -> Explanation:
    """Say why the first plan won and what binds it."""
    if not plans:
        return Explanation()
    best = plans[0].estimate
    return Explanation(binding=_binding(best), runner_up=_runner_up(plans))


def _runner_up(plans: Sequence[RankedPlan]) -> str:
    if len(plans) < 2:
        return "No other set of degrees fits, or none was close enough to list."
    best, second = plans[0], plans[1]
    beats = f"It beats {changes(best, second)} by {second.slower:.2%}"
    if second.why == NO_DIFFERENCE:
        return f"{beats}; the two are {NO_DIFFERENCE}."
    return f"{beats}, which would pay {second.why} of the step."


def changes(best: RankedPlan, other: RankedPlan) -> str:
    """Settings and degrees of the other plan where two plans differ."""
    differing = [
        *_settings_changed(best, other),
        *degrees_changed(best.layout, other.layout),
    ]
    return ", ".join(differing) or "its own variants"


def _settings_changed(best: RankedPlan, other: RankedPlan) -> list[str]:
    """Framework, method, optimizer and offload where they differ."""
    ours, theirs = (
        {"framework": plan.estimate.stack.get("framework")} | plan.settings
        for plan in (best, other)
    )
    changed = [
        f"{name} {theirs[name]}" for name in theirs if theirs[name] != ours.get(name)
    ]
    if best.layout.offload != other.layout.offload:
        changed.append(offload_text(other.layout.offload) or "offload none")
    return changed


def _binding(best: Estimate) -> tuple[str, ...]:
    """The fullest rank and the largest costs beside the kernels."""
    memory = best.memory
    worst = _fullest(memory)
    kernels, others = costs_words(best)
    return (
        f"Stage {worst.stage} is the fullest, {worst.device:.1f} of "
        f"{memory.capacity_gib:.1f} GiB, {fullest_words(memory)}; beside the kernels "
        f"({kernels} of the step) it pays {others}.",
    )


def _fullest(memory: MemoryEstimate) -> StageMemory:
    return max(memory.stages, key=lambda stage: stage.device)


def fullest_words(memory: MemoryEstimate) -> str:
    """Name the category that takes most of the fullest rank.

    Args:
        memory: Peak memory. [GiB]
    """
    worst = _fullest(memory)
    held = ("activations", "weights", "gradients", "optimizer", "transient")
    parts = {CATEGORIES[name]: getattr(worst, name) for name in held}
    largest = max(parts, key=lambda name: parts[name])
    return f"most of it {largest} ({parts[largest]:.1f} GiB)"


def costs_words(best: Estimate) -> tuple[str, str]:
    """Share of the kernels in a step, and the largest costs beside them."""
    step = best.step_time_s.value
    times = best.causes_s
    kernels = times.pop("compute") / step
    costs = sorted(
        ((cause, time / step) for cause, time in times.items()),
        key=lambda pair: -pair[1],
    )
    named = ", ".join(f"{CAUSE_WORDS[c]} {s:.1%}" for c, s in costs[:3] if s > SHOWN)
    return f"{kernels:.1%}", named or "nothing"

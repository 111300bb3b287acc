"""The rules that a layout's offload obeys: one record per breach."""

from planner.cost.workload import Workload
from planner.specs.layouts.layout import Layout, Offload
from planner.verify.breach import Broken
from planner.verify.recompute import NO_RECOMPUTE, kinds_used

MOST_ZERO = 3
"""The last ZeRO stage. [1]"""


def offload_breaches(workload: Workload, layout: Layout) -> Broken:
    """Check that offload is sharded, allowed, and supported by the framework."""
    limits, allowed = workload.framework.limits, workload.search.offload
    zero, held = layout.zero_stage, _on_host(layout.offload)
    least = {"parameters": 3, "gradients": 2}
    whole = [name for name in held if zero < least.get(name, 0)]
    for name in whole:
        words = f"ZeRO-{zero} does not shard {name}, so they cannot be offloaded"
        yield "offload", words
    shown, listed = "+".join(held) or "none", workload.search.choices("offload")
    if (held and allowed is False) or (listed and shown not in listed):
        only = ", ".join(listed) or "none"
        yield "offload", f"the search block limits offload to {only}: {shown}", only
    if whole or not (held and allowed):
        return
    if not _moves_together(layout.offload, limits.offload):
        yield "offload", f"{workload.framework.name} cannot offload {shown}"
    for name in held:
        if zero < limits.offload_least_zero.get(name, 0):
            words = f"{workload.framework.name} offloads no {name} at ZeRO-{zero}"
            yield "offload", words
    yield from _parts(workload, layout)
    kinds = kinds_used(workload, layout)
    others = layout.pp > 1 or kinds != [NO_RECOMPUTE]
    if limits.offloads_activations_alone and "activations" in held and others:
        yield (
            "offload",
            f"{workload.framework.name} offloads activations only without pipeline "
            f"and recompute, not at pp {layout.pp} with {', '.join(kinds)}",
        )


def _parts(workload: Workload, layout: Layout) -> Broken:
    """Single categories are offloaded in part only where the framework can."""
    limits, zero = workload.framework.limits, layout.zero_stage
    for name in set(_on_host(layout.offload)) & limits.offload:
        part = getattr(layout.offload, name) < 1
        if part and zero < limits.offload_in_parts.get(name, MOST_ZERO + 1):
            words = f"{workload.framework.name} offloads {name} whole at ZeRO-{zero}"
            yield "offload", words


def _on_host(offload: Offload) -> list[str]:
    """Categories of which a part lies in host memory."""
    names = ("optimizer", "parameters", "gradients", "activations")
    return [name for name in names if getattr(offload, name) > 0]


def _moves_together(offload: Offload, groups: frozenset[str]) -> bool:
    """Tell if the offloaded categories are whole groups, each at a single share."""
    left = set(_on_host(offload))
    for group in groups:
        names = group.split("+")
        if len({getattr(offload, name) for name in names}) == 1:
            left -= set(names)
    return not left

"""Recompute kinds of a layout, and the rules for them: one record per breach."""

from planner.cost.memory.recompute_modules import is_known, known_kinds
from planner.cost.workload import Workload
from planner.schedules.order import SPLIT
from planner.specs.layouts.blocks import recomputed_block
from planner.specs.layouts.layout import Layout, Stage
from planner.specs.layouts.recompute import block_name
from planner.verify.breach import Broken

NO_RECOMPUTE = "none"
"""Kind of the layers of a stage that names no recompute. [text]"""


def stage_kinds(stage: Stage) -> tuple[str, ...]:
    """Recompute kind of every layer of a virtual stage, in model order.

    Returns:
        Kinds. [text], shape (layers,)
    """
    if not stage.recompute:
        return (NO_RECOMPUTE,) * stage.layers
    spans = ((part.kind,) * (part.stop - part.start) for part in stage.recompute)
    return tuple(kind for span in spans for kind in span)


def kinds_used(workload: Workload, layout: Layout) -> list[str]:
    """Recompute kinds of a layout in order of first use."""
    block = recomputed_block(layout.stages)
    if block and workload.framework.limits.recompute_blocks:
        return [block_name(block)]
    used = (kind for stage in layout.stages for kind in stage_kinds(stage))
    return list(dict.fromkeys(used))


def recompute_breaches(workload: Workload, layout: Layout) -> Broken:
    """Check that recompute kinds are known and that the framework combines them so."""
    limits, used = workload.framework.limits, kinds_used(workload, layout)
    for kind in used:
        if not is_known(workload, kind):
            known = known_kinds(workload)
            words = f"recompute kind {kind!r} is none of {known}"
            yield "stages.recompute", words, known
    if limits.recompute_scope == "plan" and len(used) > 1:
        yield (
            "stages.recompute",
            f"{workload.framework.name} has one recompute kind per plan, this has "
            f"{len(used)}: {', '.join(used)}",
        )
    again = [kind for kind in used if kind != NO_RECOMPUTE]
    if layout.schedule in SPLIT and again and not limits.recomputes_split:
        yield (
            "stages.recompute",
            f"{workload.framework.name} recomputes nothing under {layout.schedule}, "
            f"which splits the backward: {', '.join(again)}",
        )

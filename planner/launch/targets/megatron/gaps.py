"""Features of a plan that Megatron-LM's arguments cannot express."""

from collections.abc import Iterator

from planner.frameworks.megatron.launch.lacks import megatron
from planner.launch.brief import Brief, Gap
from planner.launch.switches import gaps_of, switch_gaps
from planner.launch.targets.megatron.recompute import offload_gaps, recompute_gaps

SCHEDULES = ("1f1b", "interleaved")


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """Features of a plan that Megatron-LM's arguments cannot express.

    Returns:
        One gap per feature; empty where the arguments express the whole plan. [-]
    """
    return (*gaps_of(brief, megatron), *layout_gaps(brief))


def layout_gaps(brief: Brief) -> Iterator[Gap]:
    """Layouts outside the room's limits, made by hand or for another framework."""
    yield from switch_gaps(brief, "megatron", {"cuda_graphs": ("none",)})
    its = brief.layout
    yield from recompute_gaps(its)
    yield from offload_gaps(its)
    if its.zero_stage > 1:
        what = "the distributed optimizer shards optimizer states alone"
        yield Gap(what, "layout.zero_stage", its.zero_stage, "0 and 1")
    if its.schedule not in SCHEDULES:
        allowed = ", ".join(SCHEDULES)
        yield Gap("no such schedule", "layout.schedule", its.schedule, allowed)

"""Features of a plan that a torchtitan configuration cannot express."""

from collections.abc import Iterator

from planner.frameworks.torchtitan.launch.lacks import (
    SCHEDULES,
    SPLIT,
    compiled,
    torchtitan,
)
from planner.launch.brief import Brief, Gap
from planner.launch.switches import gaps_of, switch_gaps

SWITCHES: dict[str, tuple[object, ...]] = {
    "overlap_grad_reduce": (True,),
    "overlap_param_gather": (True,),
    "ep_overlap": (False,),
    "cuda_graphs": ("none",),
}
"""Values of switches that every run has: FSDP2 always overlaps. [-]"""


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """Features of a plan that a torchtitan configuration cannot express.

    Returns:
        One gap per feature; empty where the files express the whole plan. [-]
    """
    return (
        *gaps_of(brief, torchtitan),
        *_layout_gaps(brief),
        *switch_gaps(brief, "torchtitan", SWITCHES),
    )


def _layout_gaps(brief: Brief) -> Iterator[Gap]:
    """Layouts outside the room's limits, made by hand or for another framework."""
    its = brief.layout
    split = compiled(brief.asked)
    able = [name for name in SCHEDULES if name not in SPLIT or not split]
    if its.schedule not in able:
        what = "PyTorch has no such schedule for its blocks"
        yield Gap(what, "layout.schedule", its.schedule, ", ".join(able))

"""Features of a plan that ds_config.json and its training script cannot express."""

from collections.abc import Iterator

from planner.frameworks.deepspeed.launch.lacks import deepspeed
from planner.launch.brief import Brief, Gap
from planner.launch.switches import gaps_of, switch_gaps

SWITCHES: dict[str, tuple[object, ...]] = {
    "tp_overlap": (False,),
    "ep_overlap": (False,),
    "cuda_graphs": ("none",),
}
"""Values of the switches that have no key. [-]"""


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """Features of a plan that ds_config.json and its training script cannot express.

    Returns:
        One gap per feature; empty where the files express the whole plan. [-]
    """
    return (
        *gaps_of(brief, deepspeed),
        *_layout_gaps(brief),
        *switch_gaps(brief, "deepspeed", SWITCHES),
    )


def _layout_gaps(brief: Brief) -> Iterator[Gap]:
    """Layouts outside the room's limits, made by hand or for another framework."""
    its = brief.layout
    if its.offload.activations or its.offload.gradients:
        what = "activations" if its.offload.activations else "gradients"
        allowed = "optimizer, parameters"
        yield Gap(f"no {what} on the host alone", "layout.offload", what, allowed)
    if 0 < its.offload.parameters < 1:
        value = its.offload.parameters
        yield Gap("parameters go to the host whole", "layout.offload", value, "1")

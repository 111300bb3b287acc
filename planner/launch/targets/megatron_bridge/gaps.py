"""Features of a plan that Megatron-Bridge cannot express."""

from planner.frameworks.megatron.bridge.lacks import bridge
from planner.launch.brief import Brief, Gap
from planner.launch.switches import gaps_of
from planner.launch.targets.megatron.gaps import layout_gaps


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """Features of a plan that Megatron-Bridge's recipes cannot express.

    Returns:
        One gap per feature; empty where the recipes express the whole plan. [-]
    """
    return (*gaps_of(brief, bridge), *layout_gaps(brief))

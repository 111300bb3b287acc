"""Features of a plan that a torchtune recipe cannot express."""

from planner.frameworks.accelerate.torchtune.lacks import torchtune
from planner.launch.brief import Brief, Gap
from planner.launch.switches import gaps_of, switch_gaps
from planner.launch.targets.accelerate.gaps import SWITCHES, layout_gaps


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """Features of a plan that a torchtune recipe cannot express.

    Returns:
        One gap per feature; empty where a recipe expresses the whole plan. [-]
    """
    return (
        *gaps_of(brief, torchtune),
        *layout_gaps(brief),
        *switch_gaps(brief, "accelerate", SWITCHES),
    )

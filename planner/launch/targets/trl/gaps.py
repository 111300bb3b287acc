"""Features of a plan that the YAML of `trl sft` cannot express."""

from planner.frameworks.accelerate.trl.lacks import trl
from planner.launch.brief import Brief, Gap
from planner.launch.switches import gaps_of, switch_gaps
from planner.launch.targets.accelerate.gaps import SWITCHES, layout_gaps


def gaps(brief: Brief) -> tuple[Gap, ...]:
    """Features of a plan that the YAML of `trl sft` cannot express.

    Returns:
        One gap per feature; empty where the YAML expresses the whole plan. [-]
    """
    return (
        *gaps_of(brief, trl),
        *layout_gaps(brief),
        *switch_gaps(brief, "accelerate", SWITCHES),
    )

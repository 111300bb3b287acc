"""Gaps of a plan by the records of a room's writer."""

from collections.abc import Callable, Iterator

from planner.launch.brief import Brief, Gap
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import Lack, View


def gaps_of(brief: Brief, lacks: Callable[[Asked], Iterator[Lack]]) -> Iterator[Gap]:
    """Features of a plan that a room's writer cannot express.

    Args:
        brief: The plan. [-]
        lacks: Records of the room's writer for a job. [-]

    Yields:
        One gap per feature.
    """
    view = View(brief.layout)
    for lack in lacks(brief.asked):
        if lack.holds(view):
            yield Gap(lack.feature, lack.field, lack.shown(view), lack.allowed)

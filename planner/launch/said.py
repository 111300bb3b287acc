"""The records of a room's writer, said of one plan."""

from collections.abc import Callable, Iterator

from planner.launch.brief import Brief, Gap
from planner.models.asked import Asked
from planner.specs.lacks import Lack, View


def gaps_of(brief: Brief, lacks: Callable[[Asked], Iterator[Lack]]) -> Iterator[Gap]:
    """What of a plan a room's writer has no words for.

    Args:
        brief: The plan. [-]
        lacks: The room's records. [-]

    Yields:
        One gap for each.
    """
    view = View(brief.layout)
    for lack in lacks(brief.asked):
        if lack.holds(view):
            yield Gap(lack.feature, lack.field, lack.shown(view), lack.allowed)

"""Gaps of a plan by the records of a room's writer, and switches of its stack."""

from collections.abc import Callable, Iterator, Mapping

from planner.frameworks import FRAMEWORKS
from planner.launch.brief import Brief, Gap
from planner.models.asked import Asked
from planner.specs.frameworks.lacks import Lack, View
from planner.specs.frameworks.switches import Layouts, Needs


def is_on(brief: Brief, room: str, switch: str) -> bool:
    """Tell if launch files set a switch: it is priced, and the framework takes it.

    Returns:
        True where both hold, for the switch and for all switches that it needs.
    """
    (its,) = (framework for framework in FRAMEWORKS if framework.name == room)
    needs = its.switches.get(switch, Needs())
    where = Layouts.of(brief.layout, brief.architecture.mtp_layers)
    met = bool(brief.stack.get(switch)) and bool(needs.met(where).item())
    return met and all(is_on(brief, room, other) for other in needs.others)


def switch_gaps(
    brief: Brief, room: str, has: Mapping[str, tuple[object, ...]]
) -> Iterator[Gap]:
    """Switches that a plan was priced with and that the plan's files cannot set."""
    for switch, words in has.items():
        value = brief.stack.get(switch)
        if brief.framework == room and value is not None and value not in words:
            allowed = ", ".join(str(word).lower() for word in words)
            shown = str(value).lower() if isinstance(value, bool) else value
            yield Gap(
                "its files do not set this", f"spec.stack.{switch}", shown, allowed
            )


def gaps_of(brief: Brief, lacks: Callable[[Asked], Iterator[Lack]]) -> Iterator[Gap]:
    """Features of a plan that a room's writer cannot express."""
    view = View(brief.layout)
    for lack in lacks(brief.asked):
        if lack.holds(view):
            yield Gap(lack.feature, lack.field, lack.shown(view), lack.allowed)

"""Switches of a plan's stack in its launch files: those of the price, and no other."""

from collections.abc import Iterator, Mapping

from planner.frameworks import FRAMEWORKS
from planner.launch.brief import Brief, Gap
from planner.specs.switches import Layouts, Needs


def is_on(brief: Brief, room: str, switch: str) -> bool:
    """Whether launch files set a switch: the price has it, the framework takes it.

    Args:
        brief: The plan. [-]
        room: Framework that the files are for. [text]
        switch: A field of the profile. [text]

    Returns:
        False where either is not so.
    """
    (its,) = (framework for framework in FRAMEWORKS if framework.name == room)
    needs = its.switches.get(switch, Needs())
    where = Layouts.of(brief.layout, brief.architecture.mtp_layers)
    met = bool(brief.stack.get(switch)) and bool(needs.met(where).item())
    return met and all(is_on(brief, room, other) for other in needs.others)


def switch_gaps(
    brief: Brief, room: str, has: Mapping[str, tuple[object, ...]]
) -> Iterator[Gap]:
    """Switches that a plan was priced with and that its files cannot set.

    Args:
        brief: The plan; of another framework its stack is not that of the files. [-]
        room: Framework that the files are for. [text]
        has: What the files can set, by field of the profile. [-]

    Yields:
        One gap for each.
    """
    for switch, words in has.items():
        value = brief.stack.get(switch)
        if brief.framework == room and value is not None and value not in words:
            allowed = ", ".join(str(word).lower() for word in words)
            shown = str(value).lower() if isinstance(value, bool) else value
            yield Gap(
                "its files do not set this", f"spec.stack.{switch}", shown, allowed
            )

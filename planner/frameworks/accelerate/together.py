"""Settings of a trainer's file that go not together."""

from collections.abc import Iterable, Mapping
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.switches import NO


def on(given: Mapping[str, Any], name: str) -> bool:
    """Tell if a setting is given, and not off. [-]."""
    return str(given.get(name)).lower() not in NO


def refuse_together(
    given: Mapping[str, Any], pairs: Iterable[tuple[str, str]], file: str
) -> None:
    """Refuse two settings of which a run takes one."""
    for name, other in pairs:
        if on(given, name) and on(given, other):
            what = f"goes not with {other}"
            raise wrong(given, name, what, "one of the two", file)


def wrong(
    given: Mapping[str, Any], name: str, what: str, allowed: str, file: str
) -> BadInputError:
    """Complaint about a setting."""
    value = given.get(name)
    return BadInputError(what, file=file, field=name, value=value, allowed=allowed)

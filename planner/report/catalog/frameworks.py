"""Frameworks of the catalog: limits, and values of stacks with their sources."""

from collections.abc import Iterator
from dataclasses import asdict

from planner.frameworks.profiles import default_sources, profile_sources
from planner.frameworks.stacks import read_stack, stack_names
from planner.specs.frameworks.framework import Framework

Fact = tuple[str, object, str]
"""Field, value, and source or range of a value. [-]"""


def framework_entry(its: Framework) -> dict[str, object]:
    """A framework: its limits, its default stack, and what its stacks change.

    Returns:
        Fields of the entry; `values` holds value and source by stack and field. [-]
    """
    stacks = {name: _changes(its, name) for name in stack_names(its.name)}
    every = {its.profile.name: _profile(its)} | {k: v for k, v in stacks.items() if v}
    return {
        "name": its.name,
        "title": its.title,
        "version": its.profile.version,
        "stacks": list(stacks),
        **asdict(its.limits),
        "profile": its.profile.model_dump(mode="json"),
        "values": {
            stack: {field: {"value": v, "source": told} for field, v, told in facts}
            for stack, facts in every.items()
        },
    }


def framework_facts(its: Framework) -> Iterator[Fact]:
    """Every value of a framework's stacks, the default stack first."""
    yield from ((f"profile.{field}", v, told) for field, v, told in _profile(its))
    for name in stack_names(its.name):
        changes = _changes(its, name)
        yield from ((f"{name}.{field}", v, told) for field, v, told in changes)


def _profile(its: Framework) -> list[Fact]:
    """Values of the default stack; labels such as its name need no source."""
    own, defaults = profile_sources(its.name), default_sources()
    values = its.profile.model_dump(mode="json").items()
    told = (
        (field, v, own.told(field, v) or defaults.told(field, v)) for field, v in values
    )
    return [fact for fact in told if fact[2]]


def _changes(its: Framework, name: str) -> list[Fact]:
    """Values that a named stack has in place of the room's."""
    stack = read_stack(its.name, name)
    return [(field, v, stack.told(field, v)) for field, v in stack.values.items()]

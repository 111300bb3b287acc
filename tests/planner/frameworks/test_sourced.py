"""Every value of a software stack has a source, or a range that it is assumed in."""

import pytest
from pydantic import ValidationError

from planner.frameworks import FRAMEWORKS
from planner.frameworks.profiles import default_sources, profile_sources
from planner.frameworks.stacks import read_stack, stack_names
from planner.specs.frameworks.framework import Framework
from planner.specs.frameworks.profile import Profile
from planner.specs.frameworks.sourced import Assumed, Sourced

LABELS = {"name", "version", "source"}
STACKS = [(room.name, name) for room in FRAMEWORKS for name in stack_names(room.name)]


def test_every_default_of_a_profile_has_a_source() -> None:
    fields = Profile.model_fields.items()
    defaults = {name: f.default for name, f in fields if not f.is_required()}
    assert default_sources().faults(defaults) == []


@pytest.mark.parametrize("room", FRAMEWORKS, ids=lambda room: room.name)
def test_every_value_of_a_profile_has_a_source(room: Framework) -> None:
    given = room.profile.model_dump(
        exclude=LABELS, include=room.profile.model_fields_set
    )
    assert profile_sources(room.name).faults(given) == []


@pytest.mark.parametrize(("room", "name"), STACKS)
def test_every_value_of_a_stack_has_a_source(room: str, name: str) -> None:
    stack = read_stack(room, name)
    assert stack.faults(stack.values) == []


def test_faults_name_what_is_missing_unknown_doubled_or_outside() -> None:
    blocks = Sourced.model_validate(
        {
            "sources": {"a, b": "a paper", "c": "code"},
            "assumed": {
                "b": {"times": 2, "why": "guess"},
                "d": {"low": 1, "high": 2, "why": "guess"},
                "e": {"others": ["x"], "why": "guess"},
            },
        }
    )
    faults = blocks.faults({"a": 1, "b": 1, "d": 3, "e": "x", "f": 0})
    assert sorted(faults) == [
        "b: more than one source",
        "c: no such value",
        "d: 3 is outside its range",
        "e: x is among the others",
        "f: neither a source nor assumed",
    ]


def test_a_range_of_words_does_not_hold_for_a_number_and_back() -> None:
    assert (
        Assumed(times=2, why="guess").fault("ring")
        == "ring is no number: others, not a range"
    )
    assert Assumed(low=0, high=2, why="guess").fault([1])
    assert Assumed(times=2, why="guess").fault(0.5) == ""


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"times": 2, "others": [1]},
        {"low": 1},
        {"times": 1},
        {"low": 1, "high": 2, "times": 2},
    ],
)
def test_an_assumption_has_one_range(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Assumed.model_validate({**given, "why": "guess"})


def test_ranges_are_told_in_the_unit_of_the_value() -> None:
    assert (
        Assumed(times=2, why="a guess").told(0.001)
        == "assumed, 0.0005 to 0.002: a guess"
    )
    assert (
        Assumed(others=("ring",), why="a guess").told("star")
        == "assumed, ring: a guess"
    )

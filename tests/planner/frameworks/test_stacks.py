"""Every named stack is a whole profile, and says what it is and from where."""

from dataclasses import fields

import pytest

from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import read_stack, stack_names, with_stack
from planner.specs.frameworks.framework import Framework

EVERY = [(room, name) for room in FRAMEWORKS for name in stack_names(room.name)]


@pytest.mark.parametrize(("room", "name"), EVERY, ids=[name for _, name in EVERY])
def test_a_stack_is_a_whole_profile_that_differs_as_its_file_says(
    room: Framework, name: str
) -> None:
    stack, its = read_stack(room.name, name), with_stack(room, name)
    assert (stack.name, its.profile.name) == (name, name)
    given = stack.limits.model_dump(exclude_none=True)
    for field in fields(room.limits):
        theirs = getattr(room.limits, field.name)
        assert getattr(its.limits, field.name) == given.get(field.name, theirs)
    assert len(stack.source) > 20
    for field, value in stack.profile.items():
        assert getattr(its.profile, field) == value


@pytest.mark.parametrize("room", FRAMEWORKS, ids=lambda room: room.name)
def test_the_default_stack_of_a_room_is_one_of_its_stacks(room: Framework) -> None:
    stacked = with_stack(room, room.profile.name)
    same = {"version", "source"}
    assert stacked.profile.model_dump(exclude=same) == room.profile.model_dump(
        exclude=same
    )
    assert stacked.recipe == room.recipe


def test_a_stack_of_another_room_is_refused() -> None:
    with pytest.raises(BadInputError, match="no such stack"):
        with_stack(FRAMEWORKS[0], "torchtitan-eager")

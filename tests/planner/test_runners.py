"""Who runs a schedule, and what is said where none of a job's frameworks does."""

import pytest

from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import with_stack
from planner.runners import refuse_schedules, who_runs

ROOMS = {room.name: room for room in FRAMEWORKS}


def test_who_runs_what() -> None:
    assert who_runs("1f1b") == ("megatron", "torchtitan", "accelerate")
    assert who_runs("zb-v") == ("torchtitan with stack.name torchtitan-eager",)
    assert who_runs("zb-h1") == ()


@pytest.mark.parametrize(
    ("wanted", "rooms", "told"),
    [
        (["zbv"], ["megatron"], "no such schedule; did you mean zb-v"),
        (["zb-v"], ["megatron"], "torchtitan with stack.name torchtitan-eager"),
        (["zb-h1"], ["torchtitan"], "who can: none here"),
        (["zb-v", "zb-h1"], ["megatron"], "zb-h1: none here"),
    ],
)
def test_what_none_runs_is_refused(
    wanted: list[str], rooms: list[str], told: str
) -> None:
    with pytest.raises(BadInputError, match=r"who can|no such") as error:
        refuse_schedules(
            wanted, [ROOMS[name] for name in rooms], field="search.schedule"
        )
    assert told in str(error.value)


def test_what_one_of_them_runs_passes() -> None:
    eager = with_stack(ROOMS["torchtitan"], "torchtitan-eager")
    refuse_schedules(["zb-v"], [ROOMS["megatron"], eager], field="search.schedule")
    refuse_schedules(["zb-v", "1f1b"], [ROOMS["megatron"]], field="search.schedule")
    refuse_schedules([], [ROOMS["megatron"]], field="search.schedule")

"""Every stage lies on one rank, and neighbours pay for the way between them."""

import pytest

from planner.schedules import placement


def test_loops_go_round() -> None:
    place = placement("interleaved", 3, 2)
    assert [place.rank(stage) for stage in range(6)] == [0, 1, 2, 0, 1, 2]
    assert [place.hops(stage) for stage in range(6)] == [0, 1, 1, 1, 1, 1]
    assert place.of_rank(1) == (1, 4)


@pytest.mark.parametrize("schedule", ["zb-v", "dualpipe-v"])
def test_a_v_goes_there_and_back(schedule: str) -> None:
    """First and last stage are on rank 0; at the turn nothing is sent."""
    place = placement(schedule, 3, 2)
    assert [place.rank(stage) for stage in range(6)] == [0, 1, 2, 2, 1, 0]
    assert [place.hops(stage) for stage in range(6)] == [0, 1, 1, 0, 1, 1]
    assert [place.of_rank(rank) for rank in range(3)] == [(0, 5), (1, 4), (2, 3)]
    assert [stage for stage in range(6) if place.is_last(stage)] == [5]


def test_dualpipe_holds_the_model_twice() -> None:
    """Copy p + s of stage s lies on rank p - 1 - s and starts a second chain."""
    place = placement("dualpipe", 4, 2)
    assert [place.rank(stage) for stage in range(8)] == [0, 1, 2, 3, 3, 2, 1, 0]
    assert [stage for stage in range(8) if place.is_first(stage)] == [0, 4]
    assert [stage for stage in range(8) if place.is_last(stage)] == [3, 7]
    assert [place.hops(stage) for stage in range(8)] == [0, 1, 1, 1, 0, 1, 1, 1]
    assert (place.depth, place.micros(16)) == (4, 8)


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zb-v", "dualpipe"])
@pytest.mark.parametrize("p", [1, 2, 6])
def test_ranks_and_chunks_name_each_stage_once(schedule: str, p: int) -> None:
    place = placement(schedule, p, 1 if schedule == "1f1b" else 2)
    named = [stage for rank in range(p) for stage in place.of_rank(rank)]
    assert sorted(named) == list(range(place.stages))
    for stage in range(place.stages):
        assert place.stage(place.rank(stage), place.chunk(stage)) == stage

"""A pilot goes first where the search of the whole space may end without a plan."""

import pytest
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.search import warm_start
from planner.search.warm_start import AMPLE, pilots_of
from planner.specs.search import SearchSpec

SHORT = AMPLE / 2


@pytest.fixture(autouse=True)
def every_job_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_start, "FROM_GPUS", 1)


def job(space: str) -> Pricing:
    return small_job(SearchSpec.model_validate({"space": space}), nodes=2, sequences=16)


@pytest.mark.parametrize(
    ("space", "time_s", "pilots"),
    [("default", SHORT, 1), ("default", AMPLE, 0), ("full", AMPLE, 1)],
)
def test_pilots_by_space_and_time(space: str, time_s: float, pilots: int) -> None:
    assert len(pilots_of([job(space)], time_s)) == pilots


def test_a_fleet_of_many_gpus_has_a_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pricing its default space may take longer than anyone waits for a first plan."""
    monkeypatch.setattr(warm_start, "UP_TO_GPUS", 1)
    assert len(pilots_of([job("default")], AMPLE)) == 1

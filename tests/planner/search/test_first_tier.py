"""A large space in parts: the same candidates, whoever prices them."""

import numpy as np
import pytest
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.search import first_tier
from planner.search.best_first import search_all
from planner.search.stop import Stop
from planner.search.warm_start import FROM_GPUS, parts_of
from planner.specs.search import SearchSpec


@pytest.fixture(scope="module")
def job() -> Pricing:
    """A job of about a hundred meshes."""
    limits = SearchSpec(space="full", cp=1, order="tp-cp-ep-dp-pp", micro_batch=(1, 2))
    return small_job(limits, nodes=2, sequences=16)


def test_only_large_full_spaces_have_a_part_that_comes_first(job: Pricing) -> None:
    """And only where all stages lie on one pool."""
    assert job.gpus < FROM_GPUS
    assert parts_of([job]) == ()


def test_the_part_is_the_default_space(
    job: Pricing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same job but for its space."""
    monkeypatch.setattr("planner.search.warm_start.FROM_GPUS", 1)

    (part,) = parts_of([job])

    assert part.search.space == "default"
    assert part.training == job.training


@pytest.mark.parametrize("most", [pytest.param("all", marks=pytest.mark.slow), "half"])
def test_parts_keep_what_the_whole_keeps(
    job: Pricing, most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates that may fit and whose bound is low enough, and no other."""
    whole = first_tier.first_tier(job, 1e9)
    bounds = whole.bounds[whole.order]
    step = float(bounds.max() if most == "all" else np.median(bounds))

    monkeypatch.setattr(first_tier, "PART", 7)
    monkeypatch.setattr(first_tier, "PARALLEL_FROM", 10**9)
    parts = first_tier.first_tier(job, step)

    assert len(parts.order) == int(np.count_nonzero(bounds <= step))
    assert sorted(parts.bounds) == sorted(bounds[bounds <= step])
    assert parts.declared == whole.declared
    gone = whole.counted[first_tier.NO_FIT] + int(np.count_nonzero(bounds > step))
    assert parts.counted[first_tier.NO_FIT] + parts.counted[first_tier.BY_BOUND] == gone


def test_parts_of_which_nothing_is_left(
    job: Pricing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that nothing reaches leaves a space without candidates."""
    monkeypatch.setattr(first_tier, "PART", 7)
    monkeypatch.setattr(first_tier, "PARALLEL_FROM", 10**9)

    none = first_tier.first_tier(job, 0.0)

    assert not len(none.space)
    assert not len(none.order)
    assert sum(none.declared.values()) > 0


@pytest.mark.slow
def test_several_processes_give_the_same_bounds(
    job: Pricing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, in the same order."""
    most = float(np.median(first_tier.first_tier(job, float("inf")).bounds))
    monkeypatch.setattr(first_tier, "PART", 64)
    monkeypatch.setattr(first_tier, "PARALLEL_FROM", 10**9)
    one = first_tier.first_tier(job, most)

    monkeypatch.setattr(first_tier, "PARALLEL_FROM", 1)
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    several = first_tier.first_tier(job, most)

    assert np.array_equal(one.bounds, several.bounds)
    assert np.array_equal(one.order, several.order)
    assert one.counted == several.counted


def test_what_the_part_found_stands_where_time_ends(
    job: Pricing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No time is left for the whole space: its bound, and the part's plans."""
    monkeypatch.setattr("planner.search.warm_start.FROM_GPUS", 1)
    monkeypatch.setattr("planner.search.best_first.VariantSearch.run", only_parts_run())

    whole, _, part = search_all([job])

    assert not whole.ranked
    assert whole.declared
    assert part.rough
    assert part.ranked
    assert not part.declared
    assert whole.bound_s <= part.ranked[0].step_s


def only_parts_run() -> object:
    """VariantSearch.run as if the time were over for all but the part."""
    from planner.search.best_first import VariantSearch  # noqa: PLC0415  # patched here

    run = VariantSearch.run

    def stopped(self: VariantSearch, gap: float = 0.0) -> object:
        if not self.of_a_part:
            self.stop = Stop(deadline=0.0)
        return run(self, gap)

    return stopped

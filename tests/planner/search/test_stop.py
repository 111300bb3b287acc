"""Limits of a search: they end it in every part, and what it then claims is true."""

import time

import numpy as np
import pytest
from examples import SHARE, examples
from hypothesis import given, seed, settings
from strategies import priced_space, small_job
from whole_jobs import whole_jobs

from planner.cost.pricing import Pricing
from planner.frameworks import FRAMEWORKS
from planner.job.variants import variants
from planner.planning.optimize import optimize
from planner.search import stop as limits
from planner.search.bounds.floor import step_floor
from planner.search.first_tier import bounded, first_tier
from planner.search.stop import (
    INTERRUPTED,
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    Stop,
    StoppedError,
    after,
    process_age,
    resident_bytes,
    under,
)
from planner.specs.search import SearchSpec

NAMES = [framework.name for framework in FRAMEWORKS]


@pytest.fixture(scope="module")
def job() -> Pricing:
    """A job of about a hundred meshes."""
    limits = SearchSpec(space="full", cp=1, order="tp-cp-ep-dp-pp", micro_batch=(1, 2))
    return small_job(limits, nodes=2, sequences=16)


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", NAMES if SHARE < 20 else NAMES[1:])
def test_no_candidate_is_faster_than_the_floor(name: str) -> None:
    """Not even a bound is, in any space of any drawn job."""

    @seed(0)
    @settings(max_examples=examples(20), print_blob=False, deadline=None)
    @given(whole_jobs(name, 400, 6))
    def check(drawn: Pricing) -> None:
        for variant in variants([drawn]):
            floor = step_floor(variant)
            assert floor > 0
            table, space = priced_space(variant)
            bounds, _ = bounded(table, space)
            assert not len(bounds) or floor <= bounds.min()

    check()


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (Stop(deadline=0.0), OUT_OF_TIME),
        (Stop(memory=1.0), OUT_OF_MEMORY),
        (Stop(why=INTERRUPTED), INTERRUPTED),
    ],
    ids=[OUT_OF_TIME, OUT_OF_MEMORY, INTERRUPTED],
)
def test_a_limit_ends_the_listing_too(job: Pricing, rule: Stop, why: str) -> None:
    """Nothing is listed, nothing is claimed but the floor."""
    tier = first_tier(job, float("inf"), rule)
    assert not len(tier.space)
    assert tier.stopped == why
    assert tier.unseen_s == step_floor(job)

    result = optimize([job], stop=Stop(rule.deadline, rule.memory, why=rule.why))

    assert result.status == "unknown"
    assert 0 < result.objective.bound < float("inf")
    assert any(why in warning for warning in result.warnings)


def test_a_listing_cut_short_keeps_what_it_has(
    job: Pricing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates of the first parts are searched, and the floor bounds the rest."""
    monkeypatch.setattr("planner.search.first_tier.PART", 16)
    whole = first_tier(job, float("inf"))
    looks = iter(range(10**9))

    few = Stop(more=lambda: "" if next(looks) < 6 else OUT_OF_TIME)
    tier = first_tier(job, float("inf"), few)

    assert 0 < len(tier.space) < len(whole.space)
    assert tier.unseen_s <= whole.bounds.min()
    assert np.isin(tier.bounds, whole.bounds).all()


def test_an_interrupt_while_the_rule_looks_is_not_lost() -> None:
    """A signal is handled between two steps of Python, also inside a look."""

    def signalled() -> str:
        stop.interrupt()
        return ""

    stop = Stop(more=signalled)
    assert stop.reached
    assert stop.within(1.0).reached
    assert stop.why == INTERRUPTED


def test_an_interrupted_search_hands_over_its_plans(job: Pricing) -> None:
    """The best so far, with a bound that the whole search keeps."""
    proven = optimize([job], top=1)
    rule = Stop()

    def interrupt(state: object) -> None:
        if getattr(state, "incumbent_s", None) is not None:
            rule.interrupt()

    result = optimize([job], top=4, stop=rule, progress=interrupt)

    assert rule.why == INTERRUPTED
    assert result.plans
    assert result.objective.bound >= proven.objective.value


def test_the_rule_of_a_command_ends_every_search_under_it() -> None:
    with under(Stop(memory=1.0)):
        assert after(100.0).reached
        assert after(100.0).memory == 1.0
    assert not after(100.0).reached


def test_parts_share_what_time_is_left() -> None:
    """What the first leaves the second has; none outlives the whole."""
    whole = Stop(time.monotonic() + 10.0)
    first, second = whole.shared(2)
    assert first.left == pytest.approx(5.0, abs=0.5)
    assert second.left == pytest.approx(10.0, abs=0.5)
    whole.interrupt()
    assert first.reached
    assert second.reached


def test_a_rule_that_held_holds_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Stop(memory=1.0)
    assert rule.reached
    monkeypatch.setattr(limits, "resident_bytes", lambda: 0.0)
    with pytest.raises(StoppedError, match=OUT_OF_MEMORY):
        rule.check()


def test_memory_and_age_are_those_of_this_process() -> None:
    before = resident_bytes()
    block = np.ones(1 << 24)
    assert resident_bytes() - before > 0.9 * block.nbytes
    assert 0 < process_age() < 24 * 3600


def test_a_search_ends_once_it_is_proven_and_its_list_is_full(
    job: Pricing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No solver runs for runners-up where as many plans are known as are asked for."""
    from planner.search.variant import BestFirst  # noqa: PLC0415

    visit, solve = BestFirst.visit, []

    def watched(self: BestFirst, *, cheaply: bool = False) -> int:
        best = self.incumbents.best
        beyond = best is not None and self.next_bound() > best.step_s
        assert cheaply is (beyond and self.incumbents.is_full)
        before = self.solved
        work = visit(self, cheaply=cheaply)
        solve.append(cheaply and self.solved > before)
        return work

    monkeypatch.setattr(BestFirst, "visit", watched)
    result = optimize([job], top=2)
    assert result.status == "optimal"
    assert solve
    assert not any(solve)

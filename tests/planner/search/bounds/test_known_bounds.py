"""Bounds that one search finds spare the next search of the job their price."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.search import first_tier
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.first_tier import FirstTier
from planner.search.space.space import Enumerator
from planner.specs.search import SearchSpec


@pytest.fixture(scope="module")
def job() -> Pricing:
    """A job of about a hundred meshes."""
    limits = SearchSpec(cp=1, order="tp-cp-ep-dp-pp", micro_batch=(1, 2))
    return small_job(limits, nodes=2, sequences=16)


@pytest.fixture
def known(job: Pricing) -> KnownBounds:
    """Bounds of a search of the whole space."""
    kept = KnownBounds()
    first_tier.first_tier(job, float("inf"), known=kept)
    return kept


def same(one: FirstTier, other: FirstTier) -> bool:
    """Tell if two searches start with equal candidates and bounds."""
    columns = ("mesh", "vpp", "schedules", "menu")
    pairs = [(getattr(one.space, n), getattr(other.space, n)) for n in columns]
    pairs += [(one.space.meshes.packed, other.space.meshes.packed)]
    pairs += [(one.bounds, other.bounds), (one.slowdown, other.slowdown)]
    pairs += [(one.order, other.order)]
    return all(np.array_equal(*pair) for pair in pairs)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_known_bounds_change_no_first_tier(
    job: Pricing, known: KnownBounds, share: float
) -> None:
    """Of the whole space, of a part of it, and with another limit on memory."""
    bounds = first_tier.first_tier(job, float("inf")).bounds
    most = float(np.quantile(bounds, share))
    narrow = replace(job, search=job.search.model_copy(update={"pp": 1}))
    for other in (job, narrow, job.at_risk_of_most(robust=True)):
        without = first_tier.first_tier(other, most)
        assert same(first_tier.first_tier(other, most, known=known), without)


def test_every_candidate_is_found_again(job: Pricing, known: KnownBounds) -> None:
    """And no candidate of a job with other prices, or unknown ones."""
    space = Enumerator(job).space()
    longer = replace(
        job,
        training=job.training.model_copy(update={"seq_len": 2 * job.training.seq_len}),
    )
    other = replace(space, vpp=space.vpp + 100)

    assert (known.of(job, space) > 0).all()
    assert not known.of(longer, space).any()
    assert not known.of(job, other).any()


def test_what_is_known_is_not_priced(
    job: Pricing, known: KnownBounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No mesh is priced where every bound is too large."""

    def priced(*_: object) -> None:
        raise AssertionError("a mesh was priced")

    monkeypatch.setattr(first_tier, "price_meshes", priced)

    tier = first_tier.first_tier(job, 0.0, known=known)

    assert not len(tier.space)
    assert sum(tier.declared.values()) == tier.counted[first_tier.BY_BOUND]

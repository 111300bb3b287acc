"""Memory is replayed along the operations: allocated at F, released after B."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.schedules import SCHEDULES, V_SHAPED, peaks, placement
from planner.specs.layouts.layout import Layout
from planner.specs.search import SearchSpec
from planner.verify import memory
from planner.verify.idle import Idle
from planner.verify.memory import peak_blocks
from planner.verify.price import blocks
from planner.verify.prices import Prices

NAMES = ("static", "saved", "transient", "accumulated", "pending")
SIZES = st.integers(0, 99)


def prices(shape: dict[str, Any], stages: list[list[tuple[int, ...]]]) -> Any:
    """Stand-in for Prices: units of sizes in the order of ``NAMES``."""
    held = [
        [
            SimpleNamespace(**dict(zip(NAMES, unit, strict=True)), idle=Idle())
            for unit in stage
        ]
        for stage in stages
    ]
    none = SimpleNamespace(saved=0)
    plan = SimpleNamespace(
        pricing=SimpleNamespace(search=SearchSpec()),
        layout=Layout(**shape),
        stages=held,
        embedding=none,
        head=none,
    )
    plan.on = lambda _rank: plan
    return plan


def test_a_pipeline_by_hand() -> None:
    """Rank 0 holds two micro-batches, rank 1 one; one transient at a time.

    Rank 0: 10 + 20 static, 2 * (3 + 4) saved, max(5, 6) beside, 1 + 2 wait.
    """
    rank0 = [(10, 3, 5, 1, 900), (20, 4, 6, 2, 900)]
    rank1 = [(7, 1, 50, 0, 900)]
    plan = prices({"pp": 2, "grad_accum": 4}, [rank0, rank1])
    assert peak_blocks(plan) == [30 + 14 + 6 + 3, 7 + 1 + 50]


def test_a_split_backward_by_hand() -> None:
    """In zb-h1 two micro-batches are held on both; on rank 1 both wait for their W.

    Rank 0: 10 static, 2 * 3 saved, 5 beside, 1 waits for its sum, 11 of gradients.
    """
    plan = prices(
        {"pp": 2, "grad_accum": 4, "schedule": "zb-h1"},
        [[(10, 3, 5, 1, 11)], [(7, 1, 50, 0, 13)]],
    )
    assert peak_blocks(plan) == [10 + 6 + 5 + 1 + 11, 7 + 2 + 50 + 2 * 13]


@st.composite
def plans(draw: st.DrawFn) -> Any:
    schedule = draw(st.sampled_from(SCHEDULES))
    pp = draw(st.integers(1, 4))
    chunks = schedule == "interleaved" and pp > 1
    vpp = draw(st.integers(1, 3)) if chunks else 1
    micro = draw(st.integers(1, 4)) * pp if chunks else draw(st.integers(1, 9))
    if schedule in V_SHAPED:
        vpp, pp = 2, (pp + pp % 2 if schedule == "dualpipe" else pp)
        micro = micro if schedule == "zb-v" else 2 * (micro + pp)
    shape = {"pp": pp, "vpp": vpp, "grad_accum": micro, "schedule": schedule}
    units = st.lists(st.tuples(*[SIZES] * 5), min_size=1, max_size=3)
    depth = placement(schedule, pp, vpp).depth
    return prices(shape, [draw(units) for _ in range(depth)])


def by_counts(plan: Any, rank: int) -> int:
    """The same from the fullest moments, as the cost model has it."""
    shape = plan.layout
    place = placement(shape.schedule, shape.pp, shape.vpp)
    chunks = [plan.stages[stage % place.depth] for stage in place.of_rank(rank)]
    moments = peaks(shape.schedule, shape.pp, shape.vpp, shape.grad_accum)[rank]
    saved = [sum(u.saved for u in chunk) for chunk in chunks]
    late = [sum(u.pending for u in chunk) for chunk in chunks]
    return sum(u.static for chunk in chunks for u in chunk) + max(
        sum(n * size for n, size in zip(moment.counts, saved, strict=True))
        + sum(n * size for n, size in zip(moment.pending, late, strict=True))
        + max(u.transient for u in chunks[moment.chunk])
        + sum(u.accumulated for u in chunks[moment.chunk])
        for moment in moments
    )


@settings(deadline=None)
@given(plans())
def test_the_replay_peaks_where_the_counts_say(plan: Any) -> None:
    found = peak_blocks(plan)
    assert found == [by_counts(plan, rank) for rank in range(plan.layout.pp)]


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 1), (512, 1), (513, 2)])
def test_a_block_is_taken_whole(size: float, expected: int) -> None:
    assert blocks(size) == expected


@pytest.fixture(scope="module")
def claim(workload_of: Callable[..., Any], claims_of: Callable[..., Any]) -> Any:
    return claims_of(workload_of(pp=2), top=1)[0]


def test_memory_is_claimed_of_every_rank(claim: Any) -> None:
    (sentence,) = replace(claim, device_gib=claim.device_gib[:1]).objections()
    assert sentence == "device memory is claimed of 1 ranks, pp is 2"


@pytest.mark.parametrize("factor", [0.998, 1.002, float("nan")])
def test_other_memory_of_one_rank_is_objected_to(claim: Any, factor: float) -> None:
    first, second = claim.device_gib
    (sentence,) = replace(claim, device_gib=(first, second * factor)).objections()
    assert sentence.startswith("pipeline rank 1 needs ")


def test_a_rank_over_its_budget_is_objected_to(claim: Any) -> None:
    """The same plan with a context that takes all but 2 GB of the device."""
    room = claim.pricing.gpu.memory_capacity / 1e9 - 2
    profile = claim.pricing.profile.model_copy(update={"context_gb": room})
    framework = replace(claim.pricing.framework, profile=profile)
    tight = replace(claim, pricing=replace(claim.pricing, framework=framework))
    over = [sentence for sentence in tight.objections() if "budget" in sentence]
    assert [sentence[:15] for sentence in over] == [
        "pipeline rank 0",
        "pipeline rank 1",
    ]


@pytest.mark.parametrize(("spare", "objections"), [(0, 0), (-1, 1)])
def test_the_budget_is_met_to_the_block(
    claim: Any, spare: int, objections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget of just the peak is enough, one byte less is not."""
    room = max(peak_blocks(Prices.of(claim.pricing, claim.layout))) * 512 + spare
    monkeypatch.setattr(memory, "budget_bytes", lambda *_: np.array([float(room)]))
    assert len(claim.objections()) == objections

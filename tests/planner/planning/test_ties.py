"""Ties by hand: what differs counts, what is shared cancels; the rule of choice."""

import math
from dataclasses import replace
from typing import Any

import pytest
from strategies import small_job

from planner.frameworks.sanity import compared
from planner.planning.prediction.predict import predict
from planner.planning.ties import (
    CONTEXT_TOKENS,
    MOST_SLOWER,
    USUAL,
    Contender,
    robust_choice,
    tie,
    tied,
    why_robust,
)
from planner.specs.answer.comparison import differing
from planner.specs.answer.estimate import Interval, TimeBreakdown
from planner.specs.answer.uncertainty import Band
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec

SPREAD = compared().spread
POINT = Band(low=1.0, high=1.0)


def contender(
    free: float = 10.0, changes: dict[str, Any] | None = None, **causes: float
) -> Contender:
    """A plan of 1 s unless told otherwise, with so much memory free. [GiB]."""
    workload = small_job(SearchSpec())
    plan = predict(workload, PartialLayout(tp=1, pp=1))
    spent = TimeBreakdown(**({"compute": 1.0} | causes))
    memory = plan.estimate.memory
    peak = Interval.around(memory.capacity_gib - free, POINT)
    estimate = plan.estimate.model_copy(
        update={
            "step_time_s": Interval.around(sum(spent.model_dump().values()), POINT),
            "time_breakdown_s": spent,
            "memory": memory.model_copy(update={"peak_device_gib": peak}),
        }
    )
    layout = plan.layout.model_copy(update=changes or {})
    return Contender(workload, layout, estimate)


def test_what_two_layouts_share_cancels() -> None:
    """0.1 s of 1 s moved from one cause to another: 0.2 s differ, over 1 s."""
    ours = TimeBreakdown(compute=0.8, bubble=0.2)
    theirs = TimeBreakdown(compute=0.8, bubble=0.1, tp_comm=0.1)
    assert differing(ours, ours) == 0
    assert differing(ours, theirs) == pytest.approx(0.2)
    assert differing(theirs, ours) == pytest.approx(0.2)
    assert compared().error(ours, theirs) == pytest.approx(SPREAD * math.sqrt(0.2))


def test_a_trade_is_a_tie_where_as_much_more_of_one_cause_is_not() -> None:
    """4 % slower: beyond the error of 4 % more kernels, inside that of a trade."""
    best = contender(compute=0.8, bubble=0.2)
    trade = contender(compute=0.8, tp_comm=0.24)
    worse = contender(compute=0.84, bubble=0.2)
    assert 0.04 > SPREAD * math.sqrt(0.04 / math.sqrt(1.04))
    assert tied([best, trade]) == [0, 1]
    assert tied([best, worse]) == [0]
    assert tied([best, worse, trade]) == [0, 2]
    assert tied([]) == []


def test_the_same_plan_far_slower_is_no_tie() -> None:
    assert tied([contender(), contender(compute=1.5)]) == [0]


def test_fewer_axes_then_the_frameworks_defaults_then_memory_then_the_faster() -> None:
    split = contender(changes={"tp": 2, "pp": 2})
    whole = contender(compute=1.001)
    other = 2 if whole.layout.zero_stage == 3 else 3
    unusual = contender(free=30.0, changes={"zero_stage": other})
    assert split.axes == whole.axes + 2
    assert robust_choice([split, whole], [0, 1]) == 1
    assert robust_choice([unusual, whole], [0, 1]) == 1
    roomy = contender(free=20.0, compute=1.002)
    assert robust_choice([contender(), whole, roomy], [0, 1, 2]) == 2
    assert robust_choice([contender(), whole], [0, 1]) == 0


def test_splitting_short_sequences_is_unusual_and_whole_replicas_are_not() -> None:
    """Of as many axes TP wins over CP of few tokens; ZeRO 0 asks for nothing."""
    short = contender(changes={"cp": 2})
    assert short.pricing.training.seq_len < 2 * CONTEXT_TOKENS
    tensor = contender(compute=1.01, changes={"tp": 2})
    assert robust_choice([short, tensor], [0, 1]) == 1
    whole, sharded = contender(changes={"zero_stage": 0}), contender(compute=1.01)
    assert robust_choice([whole, sharded], [0, 1]) == 0


@pytest.mark.parametrize(("cp", "unusual"), [(1, 0), (2, 0), (4, 1)])
def test_a_context_rank_has_4096_tokens_or_more(cp: int, unusual: int) -> None:
    """Ranks of 8,192 tokens: two have 4,096 each, four 2,048."""
    plan = contender(changes={"cp": cp})
    training = plan.pricing.training.model_copy(update={"seq_len": 8192})
    plan = replace(plan, pricing=replace(plan.pricing, training=training))
    assert plan.complexity[1] == unusual


def test_a_usual_layout_is_worth_little_of_the_step() -> None:
    other = 2 if contender().layout.zero_stage == 3 else 3
    unusual = contender(changes={"zero_stage": other})
    near, far = (
        contender(compute=1 + USUAL - 0.001),
        contender(compute=1 + USUAL + 0.001),
    )
    assert robust_choice([unusual, near], [0, 1]) == 1
    assert robust_choice([unusual, far], [0, 1]) == 0


def test_data_and_expert_parallelism_are_no_axes() -> None:
    spread = contender(changes={"dp": 8, "dp_shard": 8})
    assert spread.axes == contender(changes={"dp": 1, "dp_shard": 1}).axes
    dense, experts = contender(compute=1.03), contender(changes={"ep": 8})
    assert experts.axes == dense.axes
    assert robust_choice([experts, dense], [0, 1]) == 0


@pytest.mark.parametrize(
    "fancy", [{"cp": 2}, {"pp": 2}, {"pp": 2, "vpp": 8}, {"tp": 2, "cp": 4}]
)
def test_a_plain_layout_beats_one_with_an_axis_for_little(
    fancy: dict[str, Any],
) -> None:
    plain = contender(compute=1.001)
    assert robust_choice([contender(changes=fancy), plain], [0, 1]) == 1


def test_a_larger_micro_batch_for_a_thousandth_loses_by_its_memory() -> None:
    large = contender(free=4.0, changes={"micro_batch": 8})
    assert robust_choice([large, contender(free=9.0, compute=1.001)], [0, 1]) == 1


def test_no_choice_is_much_slower_than_the_fastest() -> None:
    fancy = contender(changes={"tp": 2, "pp": 2})
    near = contender(compute=1 + MOST_SLOWER - 0.001)
    far = contender(compute=1 + MOST_SLOWER + 0.001)
    assert robust_choice([fancy, near], [0, 1]) == 1
    assert robust_choice([fancy, far], [0, 1]) == 0


def test_a_tie_says_who_is_in_it_and_what_tells_them_apart() -> None:
    plans = [contender(bubble=0.1), contender(free=30.0, compute=1.11)]
    found = tie(plans, tied(plans), {0: 1})
    first, second = found.plans
    assert (first.rank, first.slower, first.error) == (1, 0.0, 0.0)
    assert second.rank is None
    assert second.slower == pytest.approx(1.11 / 1.1 - 1)
    assert found.within == second.slower <= second.error
    assert second.free_gib == pytest.approx(30.0)
    assert "30.0 GiB free (the fastest 10.0)" in why_robust(plans, [0, 1], 1)

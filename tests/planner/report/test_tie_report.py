"""A tie in words: which plans, how close, how it would be decided."""

import pytest

from planner.report.sections.ties import bought, free_words, tie_sentences
from planner.specs.answer.result import (
    Explanation,
    Fastest,
    GivenBack,
    Objective,
    Result,
    SearchReport,
    Tie,
    TiedPlan,
)
from planner.specs.layouts.layout import Layout, Stage


def plan(rank: int | None, slower: float) -> TiedPlan:
    layout = Layout(
        tp=2,
        sp=True,
        pp=1,
        dp=4,
        dp_shard=4,
        zero_stage=1,
        grad_accum=1,
        schedule="1f1b",
        order="tp-cp-ep-dp-pp",
        stages=(Stage(layers=2),),
    )
    return TiedPlan(
        rank=rank,
        layout=layout,
        settings={},
        framework="megatron",
        slower=slower,
        error=0.024,
        free_gib=12.0,
        axes=2,
    )


def said(*plans: TiedPlan, robust: bool = False) -> str:
    tie = Tie(
        plans=plans,
        within=max(one.slower for one in plans),
        rule="the rule",
        spread=0.1,
        source="rows",
    )
    result = answer().model_copy(update={"tie": tie, "robust": robust})
    return " ".join(tie_sentences(result.tie, robust=result.robust))


def answer() -> Result:
    return Result(
        status="optimal",
        objective=Objective(name="throughput", value=1.0, bound=1.0, gap=0.0),
        search=SearchReport(space=1, priced=1, pruned={}, solved=0, seconds=0.0),
        plans=(),
        explanation=Explanation(),
    )


def faster(share: float, risk: float) -> Fastest:
    return Fastest(
        status="optimal",
        layout=plan(None, 0.0).layout,
        framework="megatron",
        step_time_s=1.0,
        faster=share,
        oom_probability=risk,
        peak_device_gib=70.0,
    )


def test_each_riskier_plan_says_what_admits_it() -> None:
    options = {"riskier": (faster(0.034, 0.0961),), "fastest": faster(0.065, 0.312)}
    first, last, how = bought(answer().model_copy(update=options))
    assert first.startswith("3.4% faster at a 9.6% risk of running out of memory: tp=2")
    assert first.endswith("(--set search.memory_risk=0.1)")
    assert last.startswith("6.5% faster at a 31% risk")
    assert last.endswith("(--robust off)")
    assert "planner tune" in how
    assert bought(answer().model_copy(update={"fastest": faster(0.0, 0.04)})) == ()
    assert bought(answer()) == ()


def test_amounts_of_equal_price_are_told_together() -> None:
    prices = {5.0: 0.0, 10.0: 0.0, 20.0: 0.052}
    given = tuple(
        GivenBack(gib=gib, status="optimal", slower=slower, most_slower=0.25)
        for gib, slower in prices.items()
    )
    said = free_words(answer().model_copy(update={"given_back": given}))
    assert said == "5 or 10 GiB of every GPU more costs nothing, 20 GiB 5.2%"


def test_listed_plans_that_tie_are_named_by_rank() -> None:
    text = said(plan(1, 0.0), plan(2, 0.004), plan(3, 0.012))
    assert text.startswith("Plans 1-3 are within 1.20%: a tie.")
    assert "prediction error is 2.4%" in text
    assert text.endswith("--robust on chooses among them: the rule.")
    assert "Plans 1, 3-4 are" in said(plan(1, 0.0), plan(3, 0.0), plan(4, 0.0))


def test_unlisted_ones_are_told_with_what_they_cost() -> None:
    one = said(plan(1, 0.0), plan(None, 0.01))
    assert one.startswith("The fastest and 1 that is not listed are within 1.00%")
    assert "Not listed: tp=2,dp=4,zero_stage=1" in one
    assert "(+1.00%, 12.0 GiB free)" in one
    many = said(plan(1, 0.0), *[plan(None, 0.01)] * 6)
    assert many.count("GiB free") == 4
    assert "; and 2 more." in many


def test_a_robust_answer_does_not_offer_itself() -> None:
    assert "--robust" not in said(plan(1, 0.0), plan(2, 0.0), robust=True)


@pytest.mark.parametrize("robust", [True, False])
def test_nothing_is_said_without_a_tie(robust: bool) -> None:  # noqa: FBT001
    alone = Result(
        status="optimal",
        objective=Objective(name="throughput", value=1.0, bound=1.0, gap=0.0),
        search=SearchReport(space=1, priced=1, pruned={}, solved=0, seconds=0.0),
        plans=(),
        explanation=Explanation(),
        robust=robust,
    )
    assert tie_sentences(alone.tie, robust=False) == []

"""A report says everything about a result, in the field's words."""

import io
import re
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from planner.document.terminal import report
from planner.report.heading import Heading
from planner.report.plan import plan_document
from planner.report.screen import PhaseAnswer
from planner.report.sections.costs import notable_stages
from planner.report.vocabulary import CATEGORIES, CAUSES
from planner.specs.answer.estimate import WAIT_WORDS, TimeBreakdown
from planner.specs.answer.result import RankedPlan, Result
from planner.specs.layouts.layout import Layout, Offload, RecomputeRange, Stage
from planner.specs.layouts.layout_text import (
    difference,
    layout_rows,
    plan_difference,
    recompute_text,
    run_length,
)

TITLE = Heading("llama", "16,384 x h100", "big", "torchtitan 0.3", "2,048 sequences")


def text_of(answer: PhaseAnswer) -> str:
    file = io.StringIO()
    console = Console(file=file, width=100, markup=False, highlight=False)
    console.print(report(plan_document([answer])))
    return file.getvalue()


def result_report(result: Result) -> PhaseAnswer:
    return PhaseAnswer.of_search("", TITLE, result)


def prediction_report(plan: RankedPlan) -> PhaseAnswer:
    return PhaseAnswer("", TITLE, plan, ())


@pytest.mark.parametrize(
    "said",
    [
        "llama on 16,384 x h100 (big), torchtitan 0.3",
        "TP 8, SP on",
        "PP 16 x VPP 8, interleaved",
        "0 + 126 x 1 + 0",
        "9.000 s between 7.650 and 10.350 s",
        "40.5% with full attention; 39.5% causal",
        "compute binds",
        "TP 4 sends more gradients",
        "Optimal in the default space: 123,456 layouts, gap 0",
        "bound 99,000",
        "tp 8 -> 4, dp 128 -> 256",
        "more [gradient] traffic",
        "2.13%",
        "a warning",
        "compile on",
        "stated default of 15 %",
        "51.0 of",
    ],
)
def test_a_result_report_says(result: Result, said: str) -> None:
    flat = " ".join(text_of(result_report(result)).split())
    assert " ".join(said.split()) in flat


def test_every_cause_and_category_has_a_place_in_a_report(result: Result) -> None:
    assert CAUSES.keys() == TimeBreakdown.model_fields.keys() | WAIT_WORDS
    stage = result.plans[0].estimate.memory.stages[0]
    assert stage.device == pytest.approx(sum(getattr(stage, c) for c in CATEGORIES))


def test_the_waterfall_is_complete_and_adds_up_to_the_step(result: Result) -> None:
    text = text_of(prediction_report(result.plans[0]))
    table = text.split("cause")[1].split("Memory")[0]
    found = re.findall(r"([\d.]+) +([\d.]+)%", table)
    *parts, whole = [(float(s), float(share)) for s, share in found]
    assert len(parts) == 4
    assert whole == (9.0, 100.0)
    assert sum(seconds for seconds, _ in parts) == pytest.approx(9.0, abs=0.005)
    assert sum(share for _, share in parts) == pytest.approx(100, abs=0.2)


def test_the_heaviest_stage_is_shown_between_first_and_last(result: Result) -> None:
    memory = result.plans[0].estimate.memory
    assert list(notable_stages(memory)) == [
        "rank 0 (first)",
        "rank 1 (heaviest)",
        "rank 2 (last)",
    ]
    alone = memory.model_copy(update={"stages": memory.stages[:1]})
    assert list(notable_stages(alone)) == ["rank 0 (first, heaviest, last)"]


def test_an_infeasible_report_gives_its_reasons(infeasible: Result) -> None:
    text = text_of(result_report(infeasible))
    assert "optimizer states alone need 99 GiB" in text
    assert "none of 10 layouts fits" in text


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_a_run_length_text_says_every_stage(counts: list[int]) -> None:
    parts = [part.split(" x ") for part in run_length(counts).split(" + ")]
    stages = [int(p[-1]) for p in parts for _ in range(int(p[0]) if p[1:] else 1)]
    assert stages == counts
    assert len(parts) == len(list(groupby(counts)))


def with_recompute(*kinds: str) -> Layout:
    ranges = tuple(
        RecomputeRange(start=i, stop=i + 1, kind=kind) for i, kind in enumerate(kinds)
    )
    return Layout(pp=1, stages=(Stage(layers=len(kinds), recompute=ranges),))


def test_recompute_is_told_by_its_share_of_the_layers() -> None:
    assert recompute_text(with_recompute("full", "full")) == "full"
    assert recompute_text(with_recompute("full", "none")) == "full on 1 of 2 layers"
    assert recompute_text(Layout(stages=(Stage(layers=4),))) == "none"


def test_a_difference_names_every_field_that_differs(result: Result) -> None:
    best, other = (plan.layout for plan in result.plans)
    assert difference(other, best) == "tp 8 -> 4, dp 128 -> 256"
    assert difference(best, best) == "the same"
    off = best.model_copy(update={"sp": False})
    assert difference(off, best) == "sp on -> off"
    split = best.model_copy(update={"cp": 2, "cp_kind": "ring"})
    assert difference(split, best) == "cp 1 -> 2"
    moved = best.model_copy(update={"stages": (Stage(layers=126),)})
    assert difference(moved, best) == "layers 126"


def chosen(plan: RankedPlan, **shares: float) -> RankedPlan:
    """The plan under qlora, with shares of it in host memory."""
    layout = plan.layout.model_copy(update={"offload": Offload(**shares)})
    update = {"layout": layout, "settings": {"method": "qlora"}}
    return plan.model_copy(update=update)


def test_what_was_chosen_beside_the_layout_is_told(result: Result) -> None:
    best = chosen(result.plans[0], optimizer=1.0, activations=0.5)
    told = text_of(prediction_report(best))
    flat = " ".join(told.split())
    assert "method qlora, offload optimizer 1.0 + activations 0.5" in flat
    assert "offload" not in text_of(prediction_report(result.plans[0]))


def test_a_runner_up_is_told_by_settings_offload_and_layout(result: Result) -> None:
    best = chosen(result.plans[0], optimizer=1.0)
    plain = chosen(result.plans[1]).model_copy(update={"settings": {"method": "full"}})
    told = "method qlora -> full, offload none, tp 8 -> 4, dp 128 -> 256"
    assert plan_difference(plain, best) == told
    assert plan_difference(best, best) == "the same"
    assert plan_difference(chosen(best), best) == "offload none"


def test_a_proof_over_several_settings_counts_them(result: Result) -> None:
    search = result.search.model_copy(update={"variants": 6})
    several = result.model_copy(update={"search": search})
    assert "layouts of 6 settings" in " ".join(text_of(result_report(several)).split())
    assert "settings" not in text_of(result_report(result))


def test_every_axis_of_a_layout_is_told(result: Result) -> None:
    told = " ".join(value for _, value in layout_rows(result.plans[0].layout))
    for words in ("TP 8", "PP 16", "VPP 8", "CP 1", "EP 1", "DP 128", "tp-cp-ep-pp-dp"):
        assert words in told

"""No time of a step is left unexplained: each part of `other` has a name."""

from dataclasses import replace
from math import isclose

import pytest
from examples import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from strategies import small_job
from tiny_models import FAMILIES, models

import planner
from planner.cost.time.columns import WAITS
from planner.errors import BadInputError
from planner.models.architecture import Architecture
from planner.planning.prediction.predict import predict
from planner.planning.reasons import CAUSE_WORDS, costs_words
from planner.report.charts.shares import SHORT
from planner.report.vocabulary import CAUSES
from planner.specs.answer.estimate import WAIT_WORDS
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec

NAMES = ("megatron", "torchtitan", "accelerate", "deepspeed")


@given(
    st.sampled_from(NAMES),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from(FAMILIES).flatmap(models),
)
@settings(max_examples=examples(800))
def test_the_parts_of_other_add_up_to_it(
    name: str, tp: int, pp: int, share: float, model: Architecture
) -> None:
    layout = {"tp": tp, "pp": pp, "offload": {"activations": share}}
    workload = replace(small_job(SearchSpec(), name=name), model=model)
    try:
        found = predict(workload, PartialLayout.model_validate(layout)).estimate
    except BadInputError:
        event("refused")
        return
    parts = found.other_by_cause_s
    event(", ".join(parts))
    assert set(parts) <= set(WAIT_WORDS)
    other = found.time_breakdown_s.other
    assert isclose(sum(parts.values()), other, rel_tol=1e-9, abs_tol=1e-12)
    whole = sum(found.causes_s.values())
    assert isclose(whole, found.step_time_s.value, rel_tol=1e-9)


def test_every_wait_has_words_wherever_causes_are_told() -> None:
    assert {*WAITS, "step_overhead"} == set(WAIT_WORDS)
    for words in (CAUSE_WORDS, CAUSES, SHORT):
        assert set(WAIT_WORDS) < set(words)


def test_the_waits_of_a_long_ring_are_named() -> None:
    """A ring of 64 at 256k is bound by its host: "other" was 52 % of the step."""
    job = {
        "model": "nemotron-3-super-120b-a12b",
        "cluster": {"name": "own", "node": "dgx-h100", "nodes": 16},
        "training": {"seq_len": 262144, "global_batch": 16},
    }
    line = "tp=2,cp=64,ep=64,micro_batch=1,zero_stage=1,recompute=full,stages=even"
    found = planner.predict(job, layout=line).estimate
    step = found.step_time_s.value
    assert found.causes_s["launches"] / step == pytest.approx(0.516, abs=5e-3)
    assert found.time_breakdown_s.other / step == pytest.approx(0.524, abs=5e-3)
    assert costs_words(found)[1].startswith("waits for kernel launches 51.6%")


def test_waits_of_offloaded_activations_are_told_from_those_for_the_host() -> None:
    job = {
        "model": "llama-3.1-8b",
        "cluster": {"name": "own", "node": "dgx-h100", "nodes": 1},
        "training": {"seq_len": 4096, "global_batch": 64},
    }
    line = "tp=2,micro_batch=1,stages=even,recompute=none"
    own, moved = (
        planner.predict(job, layout=f"{line},{more}").estimate.other_by_cause_s
        for more in ("offload.activations=0.0", "offload.activations=1.0")
    )
    assert "offload_copies" not in own
    assert moved["offload_copies"] > 0
    assert moved["step_overhead"] == own["step_overhead"]

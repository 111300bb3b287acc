"""A layout that ran has a place in the answer, and is evidence for its neighbours."""

from math import asin, inf, pi
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import some
from typer.testing import CliRunner

import planner
from planner.cli import app
from planner.errors import BadInputError
from planner.frameworks.fitted import intervals, uncertainty
from planner.hardware.reading.files import SHIPPED
from planner.job.variants import with_settings
from planner.planning.prediction.ran import with_ran
from planner.questions.inputs.given import looked_up
from planner.specs.answer.uncertainty import Uncertainty

JOBS = {
    "llama-3.1-405b-16k-h100": 0.47,
    "llama-3.1-405b-128k-16k-h100": None,
    "deepseek-v3-2048-h800": None,
    "megatron-1t-3072-a100": None,
}
"""Jobs that carry a published layout, and the risk that we see."""
TIGHT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "cluster": "dgx-a100-1-node",
    "training": {"seq_len": 8192, "global_batch": 64},
    "framework": "torchtitan",
    "layout": {"dp": 8, "zero_stage": 3, "micro_batch": 2, "recompute": "none"},
}
BANDS = uncertainty(framework="megatron", stack="megatron-2026", arch="hopper")


def known(room: float) -> Uncertainty:
    return BANDS.model_copy(update={"ran_within": room})


@pytest.mark.parametrize("job", some(list(JOBS), 1))
def test_the_published_layout_has_a_place(job: str) -> None:
    """On the old code all four were a warning alone."""
    result = planner.plan(job, time_limit=20)
    told = result.yours
    assert told is not None
    assert told.given is not None
    assert told.given.estimate.memory.oom_probability > 0.05
    assert told.refused.startswith("it runs out of memory with")
    faster = [
        plan
        for plan in result.plans
        if plan.estimate.step_time_s.value < told.given.estimate.step_time_s.value
    ]
    assert told.position == len(faster) + 1
    assert not told.is_answer


@pytest.mark.slow
def test_a_layout_that_ran_has_no_risk_and_frees_its_neighbours() -> None:
    before = planner.plan("llama-3.1-405b-16k-h100")
    after = planner.plan("llama-3.1-405b-16k-h100", set={"layout.ran": True})
    assert (before.status, after.status) == ("optimal", "optimal")
    assert after.yours.given.estimate.memory.oom_probability == 0
    assert (after.yours.ran, after.yours.refused) == (True, "")
    steps = [each.plans[0].estimate.step_time_s.value for each in (before, after)]
    assert steps[1] < steps[0] * 0.95
    assert after.plans[0].estimate.memory.oom_probability <= 0.05


def test_what_ran_is_no_risk_to_any_command() -> None:
    ran = {"layout.ran": True}
    for answer in (planner.predict(TIGHT), planner.predict(TIGHT, set=ran)):
        memory = answer.estimate.memory
        assert memory.peak_device_gib.value > 0
    assert memory.oom_probability == 0
    assert memory.verdict == "fits"
    assert memory.peak_device_gib.high <= memory.capacity_gib
    held = planner.memory(TIGHT, set=ran).memory
    assert (held.oom_probability, held.verdict) == (0, "fits")


def test_what_ran_joins_the_race_and_may_be_the_answer() -> None:
    limits = {"search": {"tp": 1, "pp": 1, "cp": 1}}
    plain = planner.plan(TIGHT | limits)
    assert plain.yours.refused
    assert not plain.yours.is_answer
    ran = planner.plan(TIGHT | limits, set={"layout.ran": True})
    assert ran.yours.is_answer
    assert ran.plans[0].layout == ran.yours.given.layout
    assert ran.plans[0].estimate.memory.oom_probability == 0


def test_a_layout_has_a_place_where_nothing_else_fits() -> None:
    job = TIGHT | {"search": {"tp": 1, "pp": 1, "cp": 1, "recompute": "none"}}
    job["training"] = {"seq_len": 32768, "global_batch": 64}
    result = planner.plan(job)
    assert result.status == "infeasible"
    assert result.yours.given.estimate.memory.oom_probability > 0.5
    assert result.yours.position == 1


def test_a_layout_that_cannot_be_priced_says_why() -> None:
    job = TIGHT | {"layout": {"tp": 3}, "search": {"tp": 1, "pp": 1, "cp": 1}}
    told = planner.plan(job).yours
    assert told.given is None
    assert "tp" in told.refused


def test_counted_states_beyond_the_memory_cannot_have_run() -> None:
    job = TIGHT | {"model": "llama-3.1-70b", "layout": {"dp": 8, "zero_stage": 3}}
    with pytest.raises(BadInputError, match="cannot have run") as told:
        planner.predict(job, set={"layout.ran": True})
    assert told.value.field == "layout.ran"


def test_ran_goes_with_a_layout() -> None:
    job = {name: value for name, value in TIGHT.items() if name != "layout"}
    with pytest.raises(BadInputError, match="none is given"):
        planner.plan(job, set={"layout.ran": True})
    done = CliRunner().invoke(app, ["plan", "llama-3-8b-8-a100", "--ran"])
    assert done.exit_code == 2


def test_the_correlation_is_the_share_that_sources_have_in_common() -> None:
    assert BANDS.alike == pytest.approx(1 - intervals().memory.within ** 2)


ROOMS = st.floats(0.7, 2.5)
SCALES = st.floats(0.3, 4.0)


@given(room=ROOMS, times=SCALES)
def test_evidence_never_adds_risk(room: float, times: float) -> None:
    assert known(room).beyond(times) <= BANDS.beyond(times) + 1e-9


@given(rooms=st.tuples(ROOMS, ROOMS), times=SCALES)
def test_a_tighter_run_tells_more(rooms: tuple[float, float], times: float) -> None:
    tight, loose = (known(room).beyond(times) for room in sorted(rooms))
    assert tight <= loose + 1e-9


@given(room=ROOMS, risk=st.floats(0.01, 0.5))
def test_the_limit_is_where_the_risk_is(room: float, risk: float) -> None:
    """A search's limit admits what the probability admits, or less."""
    bands = known(room)
    assert bands.beyond(bands.quantile(risk)) == pytest.approx(risk, abs=1e-6)
    assert bands.beyond(bands.exceeded(risk)) <= risk + 1e-6
    assert bands.exceeded(risk) <= max(BANDS.exceeded(risk), 1.0) + 1e-9


@given(times=SCALES, risk=st.floats(0.01, 0.99))
def test_without_evidence_nothing_changes(times: float, risk: float) -> None:
    assert known(inf).beyond(times) == BANDS.memory.beyond(times)
    assert known(inf).exceeded(risk) == BANDS.memory.exceeded(risk)
    apart = known(1.1).model_copy(update={"alike": 0.0})
    assert apart.beyond(times) == pytest.approx(BANDS.memory.beyond(times), abs=1e-9)


def test_one_shared_factor_is_a_cut_distribution() -> None:
    """Correlation near 1: (P(X > z) - P(X > x)) / (1 - P(X > x))."""
    bands = known(1.2).model_copy(update={"alike": 0.99999})
    at, cut = (1 - BANDS.memory.beyond(times) for times in (1.05, 1.2))
    assert bands.beyond(1.05) == pytest.approx(1 - at / cut, abs=2e-3)


def test_equal_layouts_by_hand() -> None:
    """Scores 0 and 0 at correlation r: 1 - (1/4 + asin(r) / 2 pi) / (1/2)."""
    bands = known(1.0)
    both = 0.25 + asin(bands.alike) / (2 * pi)
    assert bands.memory.score(1.0) == 0
    assert bands.beyond(1.0) == pytest.approx(1 - both / 0.5, abs=1e-3)
    assert NormalDist().cdf(0) == 0.5


def test_other_training_blocks_have_no_evidence() -> None:
    own = with_ran(looked_up(TIGHT, {"layout.ran": True}, SHIPPED, None)).workloads[0]
    assert own.uncertainty.ran_within < inf
    assert with_settings(own, {"method": "full"}).uncertainty == own.uncertainty
    assert with_settings(own, {"method": "lora"}).uncertainty.ran_within == inf

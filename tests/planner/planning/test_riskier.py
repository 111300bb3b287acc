"""Plans at more risk are the fastest under the laxer limits that they stand for."""

from functools import cache
from pathlib import Path

import pytest

from planner.cost.workload import Workload
from planner.job.resolve import resolve
from planner.planning import fastest
from planner.planning.optimize import optimize
from planner.report.sections.ties import bought
from planner.specs.answer.result import Result
from planner.specs.reading.read import read_spec

SPEC = Path(__file__).parents[3] / "configs/jobs/llama-3.1-70b-32-h100.yaml"
LIMITS = (0.4, 0.3, 0.2, 0.15, 0.1)
pytestmark = pytest.mark.slow


def job(risk: float = 0.05) -> Workload:
    """A job whose plans reach from 4 to 42 %."""
    spec = read_spec(SPEC, [f"search.memory_risk={risk}"])
    (workload,) = resolve(spec, file=str(SPEC), base=SPEC.parent)
    return workload


@cache
def answer() -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fastest, "LAXER", LIMITS)
        patch.setattr(fastest, "LEAST_GAIN", 0.0)
        return optimize([job()], robust=True)


def step_within(risk: float) -> float:
    """Step of the fastest plan under a limit on the risk. [s]."""
    tie = optimize([job(risk)], robust=True, beside=False)
    return min(plan.estimate.step_time_s.value for plan in tie.plans)


def test_each_is_the_fastest_under_a_limit() -> None:
    result = answer()
    assert result.fastest is not None
    plain = result.fastest
    limits = [each for each in reversed(LIMITS) if each < plain.oom_probability]
    steps = {step_within(each) for each in limits} - {step_within(0.05)}
    assert len(steps) >= 2
    assert {plan.step_time_s for plan in result.riskier} == steps - {plain.step_time_s}
    assert all(plan.status == "optimal" for plan in result.riskier)


def test_more_risk_is_faster() -> None:
    result = answer()
    assert result.fastest is not None
    plans = (*result.riskier, result.fastest)
    chances = [plan.oom_probability for plan in plans]
    gains = [plan.faster for plan in plans]
    assert 0.05 < chances[0]
    assert chances == sorted(chances)
    assert gains == sorted(gains)
    assert gains[0] > 0


def test_a_limit_as_told_admits_the_plan() -> None:
    one, how = answer().riskier[0], bought(answer())[0]
    limit = float(how.rpartition("search.memory_risk=")[2].rstrip(")"))
    assert one.oom_probability <= limit < one.oom_probability + 0.01
    assert step_within(limit) <= one.step_time_s


def test_a_gain_that_is_not_worth_telling_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fastest, "LEAST_GAIN", 0.9)
    result = optimize([job()], robust=True)
    assert result.riskier == ()
    assert result.fastest is not None
    assert result.fastest.faster > 0

"""Risk of running out of memory after runs, and what it does to the choice of runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.frameworks.sanity import compared
from planner.questions.tuning.belief import Predicted
from planner.questions.tuning.choice import decide
from planner.questions.tuning.risk import risks_after

SPREAD = compared().spread
SAFE = Predicted("safe", (0.8, 0.20), 0.03)
BOLD = Predicted("bold", (0.8, 0.15), 0.20)
BOLDEST = Predicted("boldest", (0.8, 0.14), 0.40)
PLANS = [SAFE, BOLD, BOLDEST]


def test_it_is_the_share_of_the_factors_that_the_runs_leave() -> None:
    """Against a million drawn factors; plan i runs out in the highest p_i of them."""
    factor = np.random.default_rng(0).uniform(0, 1, 1_000_000)
    risks = (0.05, 0.2, 0.35, 0.6)
    out = [factor > 1 - risk for risk in risks]
    left = ~out[0] & out[3]
    told = risks_after(risks, fitted=[0], short=[3])
    assert told == pytest.approx([gone[left].mean() for gone in out], abs=2e-3)


def test_a_run_that_fits_clears_those_as_likely_to_fit() -> None:
    assert risks_after((0.03, 0.2, 0.4), fitted=[1], short=[]) == pytest.approx(
        (0.0, 0.0, 0.25)
    )


def test_a_run_that_is_short_rules_out_those_as_likely_to_be() -> None:
    assert risks_after((0.03, 0.2, 0.4), fitted=[], short=[1]) == pytest.approx(
        (0.15, 1.0, 1.0)
    )


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 5)),
)
def test_risks_stay_in_order_and_between_0_and_1(
    risks: list[float], fitted: set[int], short: set[int]
) -> None:
    """Whatever the runs were, those that contradict a common factor included."""
    inside = set(range(len(risks)))
    told = risks_after(risks, fitted & inside, short & inside)
    assert all(0 <= risk <= 1 for risk in told)
    pairs = sorted(zip(risks, told, strict=True))
    assert [after for _, after in pairs] == sorted(after for _, after in pairs)


def test_a_gain_counts_as_far_as_it_is_likely_to_fit() -> None:
    """A hundredth more speed does not pay a risk twice as high."""
    first = decide(PLANS, {}, budget=5, spread=SPREAD)
    assert first.next == "safe"
    then = decide(PLANS, {"safe": 1.0}, budget=5, spread=SPREAD)
    assert then.next == "bold"
    sure = [Predicted(one.name, one.causes_s) for one in PLANS]
    as_if = decide(sure, {"safe": 1.0}, budget=5, spread=SPREAD)
    assert as_if.next == "boldest"
    for one, plan, other in zip(then.standings, PLANS, as_if.standings, strict=True):
        if other.gain is not None and other.faster is not None:
            left = 1 - (plan.risk - 0.03) / 0.97
            assert one.gain == pytest.approx(left * other.gain)
            assert one.faster == pytest.approx(left * other.faster)


def test_after_a_run_that_is_short_nothing_as_risky_is_tried() -> None:
    told = decide(
        PLANS, {"safe": 1.0}, ("bold",), short=("bold",), budget=5, spread=SPREAD
    )
    assert told.next is None
    assert told.standings[2].risk == 1.0
    broken = decide(PLANS, {"safe": 1.0}, ("bold",), budget=5, spread=SPREAD)
    assert broken.next == "boldest"


def test_where_the_first_choice_is_short_the_safest_comes_next() -> None:
    safer = Predicted("safer", (0.9, 0.2), 0.01)
    told = decide(
        [*PLANS, safer], {}, ("safe",), short=("safe",), budget=5, spread=SPREAD
    )
    assert (told.next, told.why) == ("safer", "it is the likeliest to fit")
    assert (
        decide(PLANS, {}, ("safe",), short=("safe",), budget=1, spread=SPREAD).next
        is None
    )

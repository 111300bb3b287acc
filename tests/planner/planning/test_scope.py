"""The scope of a proof: what was left out, and a bound on what it may bring."""

from typing import Any

import pytest

import planner
from planner.report.screen.sentences import full_words

JOB: dict[str, Any] = {
    "model": "mixtral-8x7b",
    "cluster": {"name": "two-nodes", "node": "dgx-h200", "nodes": 2},
    "training": {"seq_len": 2048, "global_batch": 32},
    "framework": "megatron",
    "search": {"tp": [1, 2], "pp": [1, 2], "cp": 1},
}


@pytest.fixture(scope="module")
def default() -> planner.Result:
    return planner.plan(JOB, top=1)


def test_rules_are_named_with_values_and_reasons(default: planner.Result) -> None:
    rules = default.search.left_out
    found = {rule.axis for rule in rules}
    assert {"etp", "micro_batch", "vpp", "recompute", "stages"} <= found
    assert not {"tp", "cp"} & found  # limited by the user
    (kinds,) = [rule.names for rule in rules if "layernorm" in rule.names]
    assert len(kinds) > 3
    assert all(rule.names and rule.why for rule in rules)


@pytest.mark.slow
def test_no_plan_of_the_full_space_is_above_the_bound(default: planner.Result) -> None:
    most = default.search.full_faster
    assert most is not None
    full = planner.plan(JOB, set={"search.space": "full"}, top=1)
    assert full.search.left_out == ()
    assert full.search.full_faster is None
    gained = full.objective.value / default.objective.value - 1
    assert 0 <= gained <= most


@pytest.mark.parametrize(
    ("most", "told"), [(0.02, ", at most 2.0% faster"), (2.6, ""), (None, "")]
)
def test_the_screen_says_of_what_a_plan_is_the_best(
    default: planner.Result, most: float | None, told: str
) -> None:
    """A bound that leaves everything open is no word worth reading."""
    search = default.search.model_copy(update={"full_faster": most})
    proven = {"search": search, "status": "optimal"}
    said = full_words(default.model_copy(update=proven))
    assert said == f"; full space: not searched (--set search.space=full){told}"

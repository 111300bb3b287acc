"""Jobs that cannot be: the smallest set of limits at fault, and what helps."""

from collections.abc import Iterable, Sequence

import pytest
from explained_jobs import ILLEGAL, TOO_LARGE

from planner.job.case import Case
from planner.planning.explanation import explain
from planner.planning.explanation.ask import Answer, fewest_nodes, fits, is_legal
from planner.planning.explanation.changes import Clock
from planner.planning.explanation.conflict import least_memory
from planner.planning.explanation.limits import (
    GPUS,
    lifted,
    limits_in_force,
    other_sizes,
)
from planner.planning.optimize import optimize
from planner.specs.answer.explanation import Explained, Relaxation
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import limit_words

ALL = {**ILLEGAL, **TOO_LARGE}
QUICK = {"tp that divides no heads", "cp that divides no sequence"}
"""Jobs that are explained in a second: of the model, the step. [text]"""


def can_be(job: Case, name: str, kept: Iterable[str]) -> bool:
    """Whether a job can be under some of its limits, all others lifted."""
    held = set(kept)
    dropped = [limit for limit in limits_in_force(job) if limit.field not in held]
    for changed in lifted(job, dropped):
        if name in ILLEGAL:
            sizes = other_sizes(changed) if GPUS not in held else ()
            if is_legal(changed) or any(map(is_legal, sizes)):
                return True
        else:
            larger = GPUS not in held and fewest_nodes(changed) is not None
            if larger or fits(changed, 20.0) is Answer.FITS:
                return True
    return False


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in ALL]
)
def test_the_known_conflict_is_found_and_the_first_relaxation_keeps_its_word(
    name: str,
) -> None:
    job, fields = ALL[name]
    answer = explain(job, PartialLayout(), time_limit=600)
    assert not answer.feasible
    assert answer.status == ("no legal layout" if name in ILLEGAL else "infeasible")
    assert {limit.field for limit in answer.conflict} == fields
    assert answer.left_out == ()
    assert_least_memory(answer)
    assert_ranked(answer.relaxations)
    first = answer.relaxations[0]
    result = optimize(job.assigned(first.assignments).workloads, top=1)
    assert result.plans
    assert result.plans[0].estimate.step_time_s.value == first.step_time_s
    assert result.plans[0].layout.gpus == first.gpus


def assert_least_memory(answer: Explained) -> None:
    """Between what is proven and what is reached there is little."""
    need = answer.need
    assert (need is None) == (answer.status == "no legal layout")
    if need is not None:
        assert f"at least {need.at_least_gib:.1f} GiB" in answer.conflict_text
        assert need.capacity_gib < need.at_least_gib < need.reached_gib
        assert need.reached_gib < 1.1 * need.at_least_gib


def assert_ranked(found: Sequence[Relaxation]) -> None:
    """What changes neither training nor machines comes before what does."""
    bought = [
        any(a.startswith(("cluster.nodes", "cluster.node=")) for a in r.assignments)
        for r in found
    ]
    trained = [any(a.startswith("training.") for a in r.assignments) for r in found]
    places = list(zip(bought, trained, strict=True))
    assert places == sorted(places)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_conflict_clashes_by_itself_and_without_any_member_no_more(name: str) -> None:
    job, fields = ALL[name]
    assert not can_be(job, name, fields)
    for member in fields:
        assert can_be(job, name, fields - {member}), member


def test_least_memory_of_a_job_without_a_legal_layout_is_not_known() -> None:
    job, _ = ILLEGAL["tp that divides no heads"]
    assert least_memory(job, Clock(1.0)) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"min": 1, "max": 8}, "tp <= 8"),
        ({"min": 2, "max": None}, "tp >= 2"),
        ({"min": 2, "max": 4}, "tp >= 2 and tp <= 4"),
        ([4, 8], "tp = 4 or 8"),
        (8, "tp = 8"),
        ("none", "tp none"),
    ],
)
def test_limits_read_as_a_user_would_say_them(value: object, words: str) -> None:
    assert limit_words("tp", value) == words

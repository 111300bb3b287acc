"""Jobs that cannot be: the smallest set of limits at fault, and what helps."""

from collections.abc import Iterable
from functools import cache

import pytest
from explained_jobs import ILLEGAL, TOO_LARGE

from planner.explain import Case, explain
from planner.explain.ask import Answer, fewest_nodes, fits, is_legal
from planner.explain.case import Clock
from planner.explain.conflict import least_memory
from planner.explain.limits import (
    GPUS,
    lifted,
    limit_words,
    limits_in_force,
    other_sizes,
)
from planner.optimize import optimize
from planner.specs.explanation import Explained
from planner.specs.layout import PartialLayout

ALL = {**ILLEGAL, **TOO_LARGE}


@cache
def explained(name: str) -> Explained:
    return explain(ALL[name][0], PartialLayout(), time_limit=60)


def can_be(job: Case, name: str, kept: Iterable[str]) -> bool:
    """Whether a job can be under some of its limits, all others lifted."""
    held = set(kept)
    dropped = [limit for limit in limits_in_force(job) if limit.field not in held]
    for changed in lifted(job, dropped):
        if name in ILLEGAL:
            sizes = other_sizes(changed) if GPUS not in held else ()
            if is_legal(changed) or any(map(is_legal, sizes)):
                return True
        elif fits(changed, 20.0) is Answer.FITS or (
            GPUS not in held and fewest_nodes(changed) is not None
        ):
            return True
    return False


@pytest.mark.parametrize("name", ALL)
def test_the_smallest_conflict_is_the_known_one(name: str) -> None:
    answer = explained(name)
    assert not answer.feasible
    assert answer.status == ("no legal layout" if name in ILLEGAL else "infeasible")
    assert {limit.field for limit in answer.conflict} == ALL[name][1]
    assert answer.left_out == ()


@pytest.mark.parametrize("name", ALL)
def test_a_conflict_clashes_by_itself_and_without_any_member_no_more(name: str) -> None:
    job, fields = ALL[name]
    assert not can_be(job, name, fields)
    for member in fields:
        assert can_be(job, name, fields - {member}), member


@pytest.mark.parametrize("name", ALL)
def test_the_first_relaxation_makes_it_feasible_in_the_time_predicted(
    name: str,
) -> None:
    job, _ = ALL[name]
    first = explained(name).relaxations[0]
    result = optimize(job.assigned(first.assignments).workloads, top=1)
    assert result.plans
    assert result.plans[0].estimate.step_time_s.value == first.step_time_s
    assert result.plans[0].layout.gpus == first.gpus


@pytest.mark.parametrize("name", TOO_LARGE)
def test_no_plan_holds_less_than_the_least_memory(name: str) -> None:
    """On GPUs of that memory nothing fits; on those of what is reached, a plan."""
    need = explained(name).need
    assert need is not None
    assert need.proven
    assert need.capacity_gib < need.at_least_gib < need.reached_gib
    assert need.reached_gib < 1.01 * need.at_least_gib


def test_least_memory_of_a_job_without_a_legal_layout_is_not_known() -> None:
    job, _ = ILLEGAL["tp that divides no heads"]
    assert least_memory(job, Clock(1.0)) is None


def test_the_conflict_is_told_with_its_numbers() -> None:
    told = explained("states whole on every GPU").conflict_text
    for words in ("tp = 1", "pp = 1", "79.3 GiB a GPU", "method full", "at least"):
        assert words in told


def test_what_changes_neither_training_nor_machines_comes_first() -> None:
    changes = [r.change for r in explained("states whole on every GPU").relaxations]
    places = [
        next(i for i, change in enumerate(changes) if change.startswith(words))
        for words in ("drop the limit", "method", "gb200")
    ]
    assert places == sorted(places)


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

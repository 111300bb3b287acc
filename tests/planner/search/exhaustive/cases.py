"""Inner problems and whole jobs that each showed a mistake once, kept as data.

The fast suite checks all of them; mutation tests see that each mistake is shown by a
case. A new mistake gets a case from :func:`find`.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from against_brute_force import (
    check_boxes,
    check_corners,
    check_first_tier,
    check_inner,
    check_whole,
)
from against_every_plan import check_answer, check_bound, check_flow, check_hurried
from against_every_plan import check_space as check_listed
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import TypeAdapter
from strategies import inner_problems
from whole_jobs import Record, made_again, recorded_jobs

from planner.cost.pricing import Pricing
from planner.specs.table import StageCosts

FILE = Path(__file__).resolve().parents[3] / "golden" / "cases.jsonl"
WRONG = (AssertionError, IndexError, RuntimeError, ValueError)
"""Errors of a check: lost layers make arrays too short, illegal layouts no price."""


@dataclass(frozen=True)
class Case:
    """A problem or a job, the check that it is for, and the mistakes that it shows."""

    check: str
    """Name of one of ``CHECKS``. [text]"""
    shows: tuple[str, ...] = ()
    """Mistakes by their names in the mutation tests. [text]"""
    problem: StageCosts | None = None
    job: Record | None = None
    ticks: int = 0
    """Looks at the clock after which a hurried search ends. [1]"""

    def whole(self) -> Pricing:
        assert self.job is not None
        return made_again(self.job)

    def inner(self) -> StageCosts:
        assert self.problem is not None
        return self.problem


CHECKS: dict[str, Callable[[Case], None]] = {
    "inner": lambda case: check_inner(case.inner()),
    "boxes": lambda case: check_boxes(case.inner()),
    "corners": lambda case: check_corners(case.inner()),
    "whole splits": lambda case: check_whole(case.inner()),
    "first tier": lambda case: check_first_tier(case.inner()),
    "answer": lambda case: check_answer(case.whole()),
    "space": lambda case: check_listed(case.whole()),
    "flow": lambda case: check_flow(case.whole()),
    "bound over pools": lambda case: check_bound(case.whole()),
    "hurried": lambda case: check_hurried(
        case.whole(), case.ticks, pytest.MonkeyPatch()
    ),
}
LINE = TypeAdapter(Case)


@cache
def cases() -> tuple[Case, ...]:
    return tuple(map(LINE.validate_json, FILE.read_text().splitlines()))


def is_caught(name: str) -> bool:
    """Tell if the case of a mistake, made by the caller, fails its check."""
    (case,) = (case for case in cases() if name in case.shows)
    return is_wrong(case)


def is_wrong(case: Case) -> bool:
    forget()
    try:
        CHECKS[case.check](case)
    except WRONG:
        return True
    finally:
        forget()
    return False


def forget() -> None:
    """Empty the caches of search, cost and schedules, which keep what was broken."""
    names = ("search", "pipeline", "cost", "estimate", "schedules")
    rooms = tuple(f"planner.{name}" for name in names)
    for module in [m for name, m in sys.modules.items() if name.startswith(rooms)]:
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def find(
    check: str,
    name: str,
    *,
    room: str = "megatron",
    fleets: bool = False,
    tries: int = 480,
) -> str:
    """Line for the file of cases: the first drawn case that shows a mistake.

    Args:
        check: Name of one of ``CHECKS``. [text]
        name: Name of the mistake, which the caller has made. [text]
        room: Framework of the jobs. [text]
        fleets: Every job on a mixed fleet. [-]
        tries: Most cases that are drawn. [1]

    Returns:
        JSON; empty where no drawn case shows it.
    """
    found: list[Case] = []

    def see(case: Case) -> None:
        if is_wrong(case):
            found.append(replace(case, shows=(name,)))
        assert not found

    drawn = given(drawn_cases(check, room, fleets=fleets))(see)
    try:
        seed(0)(settings(max_examples=tries, phases=[Phase.generate])(drawn))()
    except AssertionError:
        return LINE.dump_json(found[0], exclude_defaults=True).decode()
    return ""


def drawn_cases(check: str, room: str, *, fleets: bool) -> SearchStrategy[Case]:
    if check in {"inner", "boxes", "corners", "whole splits", "first tier"}:
        return inner_problems().map(lambda costs: Case(check, problem=costs))
    ticks = st.sampled_from([0, 10, 30, 60] if check == "hurried" else [0])
    jobs = recorded_jobs(room, 100, int(fleets))
    pairs = st.tuples(jobs, ticks)
    return pairs.map(lambda pair: Case(check, job=pair[0][0], ticks=pair[1]))

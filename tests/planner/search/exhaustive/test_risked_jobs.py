"""Search equals brute force where the risk of running out of memory is limited."""

from collections.abc import Callable
from math import ceil

import pytest
from against_every_plan import check_answer, check_flow
from examples import examples
from hypothesis import given, seed, settings
from tiers import some
from whole_jobs import ONE_IN, risked_jobs

from planner.cost.pricing import Pricing
from planner.frameworks import FRAMEWORKS

NAMES = [framework.name for framework in FRAMEWORKS]
SMALL = 100
"""Complete plans of such a job. [1]"""
PARTS = 2
"""Pieces that each framework's jobs come in, so that cores can share them. [1]"""
EVERY_PART = [(name, part) for name in NAMES for part in range(PARTS)]
PER_PART = ceil(2000 / len(EVERY_PART))
"""Jobs of a piece of the long test: all pieces make 2,000, under `thorough`. [1]"""


def run(check: Callable[[Pricing], None], name: str, *, jobs: int, part: int) -> None:
    """Check so many random jobs, and no fewer; another part draws others."""
    checked: list[Pricing] = []

    def counted(job: Pricing) -> None:
        check(job)
        checked.append(job)

    drawn = given(risked_jobs(name, SMALL, ONE_IN))(counted)
    seed(part)(settings(max_examples=jobs, print_blob=False, deadline=None)(drawn))()
    assert len(checked) >= jobs


@pytest.mark.parametrize("name", NAMES)
def test_the_best_plan_is_the_best_whose_risk_is_admitted(name: str) -> None:
    run(check_answer, name, jobs=2, part=0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), EVERY_PART)
def test_the_best_of_two_thousand_jobs_at_a_risk(name: str, part: int) -> None:
    run(check_answer, name, jobs=examples(PER_PART), part=PARTS + part)


@pytest.mark.parametrize("name", some(NAMES, 4))
def test_the_verifier_finds_the_same_chance(name: str) -> None:
    """Any plan of the flow is verified; a broken limit would raise."""
    run(check_flow, name, jobs=2, part=0)

"""Each case that ever showed a mistake holds where nothing is broken."""

import pytest
from cases import CHECKS, LINE, Case, cases, find
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_jobs import Record, made_again, recorded_jobs

from planner.cost.pricing import Pricing
from planner.frameworks import FRAMEWORKS

NAMES = [framework.name for framework in FRAMEWORKS]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.shows[0])
def test_a_case_that_showed_a_mistake_holds(case: Case) -> None:
    CHECKS[case.check](case)


def test_a_new_mistake_gets_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_rank(case: Case) -> None:
        assert case.inner().pp == 1

    monkeypatch.setitem(CHECKS, "inner", one_rank)
    found = LINE.validate_json(find("inner", "several ranks"))
    assert found.shows == ("several ranks",)
    assert found.inner().pp > 1


def parts(job: Pricing) -> tuple[object, ...]:
    """All that a job is made of but its topology, which is known by its cluster."""
    pools = [pool.topology.cluster for pool in job.pools]
    cluster = job.topology.cluster
    return job.model, job.training, job.framework, cluster, pools, job.search


@settings(max_examples=5)
@given(st.sampled_from(NAMES).flatmap(lambda name: recorded_jobs(name, 100, 2)))
def test_a_recorded_job_is_made_again(pair: tuple[Record, Pricing]) -> None:
    """From JSON, too."""
    record, job = pair
    line = LINE.dump_json(Case("answer", job=record))
    again = LINE.validate_json(line).job
    assert again is not None
    assert parts(made_again(again)) == parts(job)

"""Batches that divide badly are named, with a near batch that trains faster."""

import re
from math import gcd, inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost.workload import Workload
from planner.job.resolve import resolve
from planner.planning.awkward import FAR, WORTH, awkward, is_awkward, near_batches
from planner.planning.optimize import optimize
from planner.search.stop import after
from planner.specs.reading.read import read_spec

JOB = (
    Path(__file__).resolve().parents[3] / "configs" / "jobs" / "llama-3-8b-8-a100.yaml"
)


def job(batch: int) -> tuple[Workload, ...]:
    """8B on 32 A100s with plain layouts alone."""
    few = ("search.cp=1", "search.recompute=none", "cluster.nodes=4")
    spec = read_spec(JOB, (*few, f"training.global_batch={batch}"))
    return resolve(spec, file=JOB.name, base=JOB.parent)


@pytest.mark.parametrize(
    ("batch", "gpus", "answer"),
    [
        (37, 32, True),
        (100, 64, True),
        (32, 32, False),
        (2048, 16384, False),
        (37, 8, 0),
    ],
)
def test_a_batch_is_awkward_where_it_shares_no_divisor(
    batch: int, gpus: int, answer: int
) -> None:
    assert is_awkward(batch, gpus) is bool(answer)


@given(batch=st.integers(1, 5000), gpus=st.integers(1, 5000))
def test_near_batches_divide_better_and_are_near(batch: int, gpus: int) -> None:
    for near in near_batches(batch, gpus):
        assert gcd(near, gpus) > gcd(batch, gpus)
        assert 0 < abs(near - batch) <= FAR * batch


@pytest.mark.slow
def test_a_batch_of_37_names_another_and_what_it_brings() -> None:
    plan = optimize(job(37), top=1).plans[0].estimate
    (said,) = awkward(job(37), plan.step_time_s.value, after(inf))
    named = re.search(r"32 GPUs: (\d+) sequences train ([\d.]+) times", said)
    assert named
    other = optimize(job(int(named[1])), top=1).plans[0].estimate
    assert float(named[2]) >= 1 + WORTH
    gain = other.tokens_per_s / plan.tokens_per_s
    assert float(named[2]) == pytest.approx(gain, abs=0.01)


def test_an_even_batch_needs_no_advice() -> None:
    assert awkward(job(64), 1.0, after(inf)) == ()

"""Priced layouts that the tests of runs share: 405B on 16,384 H100s, 8B on eight."""

from pathlib import Path

import pytest

from planner.hardware.reading.files import SHIPPED
from planner.job.loading import load
from planner.planning.economics import Stretch
from planner.planning.prediction.predict import predict


def priced(job: str, *assignments: str) -> Stretch:
    """A job's own layout as a run of one stretch."""
    its = load(Path(job), assignments, catalog=SHIPPED)
    (workload,) = its.workloads
    plan = predict(workload, its.spec.layout)
    tokens = workload.training.run_tokens
    assert tokens is not None
    return Stretch(workload, plan.layout, plan.estimate, tokens)


@pytest.fixture(scope="session")
def llama_405b() -> Stretch:
    """15.6 T tokens."""
    return priced("llama-3.1-405b-16k-h100", "training.tokens=15.6e12")

"""Node counts that `compare` chooses, against a plan of every count, one by one."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from purchases import JOB, written

from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.planning.comparison.answer import CandidateAnswer, Effort
from planner.planning.comparison.candidates.candidate import plan_candidate
from planner.planning.comparison.candidates.counts import sensible_counts
from planner.planning.comparison.candidates.known import Counts
from planner.planning.comparison.candidates.least import Floor
from planner.planning.comparison.candidates.task import Task
from planner.planning.comparison.read import Asking, given_by, sweep_of
from planner.planning.economics import Planned as Phase
from planner.planning.economics import run_of
from planner.planning.optimize import optimize
from planner.specs.answer.run import Run
from planner.specs.job import JobSpec

MOST = 9
BATCH = 512
JOBS: dict[str, dict[str, Any]] = {
    "pipelines": {**JOB, "search": {**JOB["search"], "pp": {"max": 8}}},
    "context": {**JOB, "search": {**JOB["search"], "cp": [1, 2], "pp": [1, 3]}},
}
PRICES = {"rented": "2.5 USD/GPU-h", "bought": "320 kUSD/node"}


@dataclass(frozen=True)
class Listed:
    """Every count that can be trained on, with the run of its fastest plan."""

    file: Path
    runs: dict[int, Run]

    def task(
        self,
        *,
        deadline_s: float | None = None,
        budget_usd: float | None = None,
        tolerance: float = 0.0,
    ) -> Task:
        effort = Effort(tolerance=tolerance)
        asking = Asking(
            effort=effort, deadline_s=deadline_s, budget_usd=budget_usd, catalog=SHIPPED
        )
        (task,) = sweep_of([given_by(self.file)], asking).tasks
        return task

    def time_s(self, nodes: int) -> float:
        return self.runs[nodes].time_to_train_s.value

    def rent(self, nodes: int) -> float:
        cost = self.runs[nodes].cost_usd
        assert cost is not None
        return cost.total.value


FAST = {("context", "bought")}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((j, p), marks=[pytest.mark.slow] * ((j, p) not in FAST))
        for j in JOBS
        for p in PRICES
    ],
)
def listed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Listed:
    """All counts from 1 up, each planned to the proof without any knowledge."""
    job, price = request.param
    training = {**JOB["training"], "global_batch": BATCH}
    one = {"name": "it", "cluster": {"node": "dgx-h100"}, "price": PRICES[price]}
    candidates = [{**one, "most_nodes": MOST}]
    content = {"job": {**JOBS[job], "training": training}, "candidates": candidates}
    file = written(tmp_path_factory.mktemp("every"), **content)
    task = Listed(file, {}).task(deadline_s=1.0)
    runs = dict(_runs(task))
    return Listed(file, runs)


def _runs(task: Task) -> Iterator[tuple[int, Run]]:
    for nodes in range(1, MOST + 1):
        spec = JobSpec.model_validate(task.fields_at(nodes))
        workloads = task.resolved(spec)
        try:
            result = optimize(workloads, top=1)
        except BadInputError:
            continue
        assert result.status == "optimal"
        assert spec.training is not None
        phase = Phase("", workloads[0], result.plans[0], spec.training)
        run = run_of((phase,), spec.economics)
        assert run is not None
        yield nodes, run


def between(values: list[float], share: float) -> float:
    """A limit between the least and the most of some values, and a little beyond."""
    low, high = min(values), max(values)
    return low * 0.98 + share * (high * 1.02 - low * 0.98)


@pytest.mark.slow
@settings(
    max_examples=examples(12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(share=st.floats(0, 1), tolerance=st.sampled_from([0.0, 0.07]))
def test_the_smallest_is_that_of_all_counts(
    listed: Listed, share: float, tolerance: float
) -> None:
    """No smaller count meets the deadline, whatever the tolerance of a plan."""
    deadline = between([listed.time_s(n) for n in listed.runs], share)
    able = [n for n in listed.runs if listed.time_s(n) <= deadline]
    found = plan_candidate(listed.task(deadline_s=deadline, tolerance=tolerance))
    assert (0 if found.status == "too-late" else found.nodes) == min(able, default=0)
    assert found.settled
    assert "the smallest" in found.chosen or not able


@settings(
    max_examples=examples(12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(share=st.floats(0, 1), tolerance=st.sampled_from([0.0, 0.07]))
def test_the_fastest_within_a_budget_is_that_of_all_counts(
    listed: Listed, share: float, tolerance: float
) -> None:
    """To the second without a tolerance, else within it; or over the budget."""
    bought = listed.task(deadline_s=1.0).price()
    assert bought is not None

    def spent(nodes: int) -> float:
        whole = bought.per_gpu(8) * 8 * nodes
        return listed.rent(nodes) if bought.is_rate else whole

    budget = between([spent(n) for n in listed.runs], share)
    able = [n for n in listed.runs if spent(n) <= budget]
    found = plan_candidate(listed.task(budget_usd=budget, tolerance=tolerance))
    assert (found.status == "over-budget") == (not able)
    if able:
        best = min(listed.time_s(n) for n in able)
        assert found.within_budget
        assert found.settled
        _is_within(found, best, tolerance)


def _is_within(found: CandidateAnswer, best: float, tolerance: float) -> None:
    """The run is that of the fastest, and the bound is below it."""
    assert found.time_to_train_s is not None
    assert found.least_time_s is not None
    assert found.least_time_s <= best * (1 + 1e-9)
    assert best <= found.time_to_train_s * (1 + 1e-9)
    assert found.time_to_train_s * (1 - tolerance) <= best * (1 + 1e-9)


def test_a_count_that_no_power_of_two_names_is_found(listed: Listed) -> None:
    """Three nodes, where the batch is a power of two."""
    if listed.time_s(3) >= listed.time_s(2):
        pytest.skip("three nodes are no faster here")
    odd = sensible_counts(1, MOST, gpus_per_node=8, odd=1)
    assert 3 not in odd
    found = plan_candidate(listed.task(deadline_s=listed.time_s(3)))
    assert found.nodes == 3


def test_no_run_is_shorter_than_the_closed_form(listed: Listed) -> None:
    """And the rent of a second is that of the run."""
    task = listed.task(deadline_s=1.0)
    floor, price = Floor(task), task.price()
    assert price is not None
    for nodes, run in listed.runs.items():
        least, time_s = floor.at(nodes), listed.time_s(nodes)
        step = run.stretches[0].step_time_s.value
        assert 0 < least.time_s <= time_s
        assert step * least.per_step <= time_s * (1 + 1e-9)
        if price.is_rate:
            assert least.usd_per_s * time_s == pytest.approx(listed.rent(nodes))
        else:
            assert least.usd_per_s == 0


def test_counts_that_no_layout_fills_have_no_plan_of_their_own(listed: Listed) -> None:
    """Their fastest plan is that of the fewer nodes that it uses."""
    counts = Counts(listed.task(deadline_s=1.0))
    for nodes, run in listed.runs.items():
        if not counts.is_own(nodes):
            assert run.nodes.training < nodes
            assert run.nodes.training in listed.runs


def test_too_little_work_is_no_verdict(listed: Listed) -> None:
    """Nothing is called the smallest, or too late, that was not proven to be."""
    deadline = listed.time_s(max(listed.runs)) * 1.01
    asking = Asking(
        effort=Effort(work=1.0, tolerance=0.0), deadline_s=deadline, catalog=SHIPPED
    )
    (task,) = sweep_of([given_by(listed.file)], asking).tasks
    found = plan_candidate(task)
    assert found.status != "too-late"
    if found.open_counts:
        assert "the smallest" not in found.chosen
    else:
        assert found.settled

"""Why a plan wins: neighbours, prices of limits, better machines, fronts."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from explained_jobs import case

from planner.cost.estimate.estimate import estimate
from planner.cost.workload import Workload
from planner.frameworks.sanity import compared
from planner.job.case import Case
from planner.planning.explanation import explain
from planner.planning.explanation.changes import GIB, Clock, with_capacity
from planner.planning.explanation.given import MOST, changed, differences
from planner.planning.explanation.limits import InForce, limits_in_force
from planner.planning.explanation.prices import MORE_MEMORY, betters
from planner.planning.explanation.safe import safe_choice
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import predict
from planner.specs.answer.explanation import Explained, Neighbour
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout import PartialLayout
from planner.specs.reading.layout_line import read_layout

JOB = case(
    {
        "tp": {"max": 2},
        "pp": {"max": 2},
        "micro_batch": {"max": 8},
        "recompute": ["none", "full"],
    },
    framework="megatron",
)
GIVEN = "tp=2,pp=2,micro_batch=1,recompute=full"
"""Legal, and far from the best."""


@pytest.fixture(scope="module")
def told() -> Explained:
    return explain(JOB, read_layout(GIVEN), time_limit=120)


def neighbour(told: Explained, start: str) -> Neighbour:
    return next(each for each in told.neighbours if each.change.startswith(start))


@pytest.mark.slow
def test_the_best_plan_is_that_of_a_search(told: Explained) -> None:
    best = optimize(JOB.workloads, top=1).plans[0]
    assert told.feasible
    assert told.best is not None
    assert told.best.layout == best.layout
    assert told.left_out == ()


@pytest.mark.slow
def test_a_neighbour_is_priced_as_predict_prices_it(told: Explained) -> None:
    """Word by word from its degrees, not by the code that made it."""
    assert told.best is not None
    own, (workload,) = told.best.layout, JOB.workloads
    common = f"zero_stage={own.zero_stage}"
    if own.dp_shard != own.dp * own.cp:
        common += f",dp_shard={own.dp_shard}"
    for text, start in (
        (f"tp={2 * own.tp},micro_batch={own.micro_batch}", "tp"),
        (f"tp={own.tp},micro_batch={2 * own.micro_batch}", "micro-batch"),
        (f"tp={own.tp},micro_batch={own.micro_batch},recompute=full", "recompute full"),
    ):
        alone = predict(workload, read_layout(f"{text},pp={own.pp},{common}"))
        step = alone.estimate.step_time_s.value
        found = neighbour(told, start)
        assert found.step_time_s == step
        assert found.slower == pytest.approx(
            step / told.best.estimate.step_time_s.value - 1
        )


@pytest.mark.slow
def test_no_neighbour_inside_the_limits_beats_a_proven_best(told: Explained) -> None:
    assert told.status == "optimal"
    inside = [n for n in told.neighbours if n.fits and "outside" not in n.effect]
    assert inside
    assert all(n.slower is not None and n.slower >= -1e-9 for n in inside)


@pytest.mark.slow
def test_a_neighbour_that_is_not_legal_says_why(told: Explained) -> None:
    refused = [each for each in told.neighbours if not each.legal]
    assert all(each.effect.startswith("not legal: ") for each in refused)
    assert all(each.step_time_s is None for each in refused)


@pytest.mark.slow
def test_a_neighbour_ties_where_it_is_within_the_error_of_comparing(
    told: Explained,
) -> None:
    assert told.best is not None
    (workload,) = JOB.workloads
    best, own = told.best.estimate, told.best.layout
    text = f"tp={own.tp},pp={own.pp},micro_batch={2 * own.micro_batch}"
    shard = f",dp_shard={own.dp_shard}" if own.dp_shard != own.dp * own.cp else ""
    full = read_layout(f"{text},zero_stage={own.zero_stage}{shard}")
    other = predict(workload, full).estimate
    found = neighbour(told, "micro-batch")
    error = compared().error(best.time_breakdown_s, other.time_breakdown_s)
    slower = other.step_time_s.value / best.step_time_s.value - 1
    assert found.tied == (abs(slower) <= error)
    assert all(n.fits for n in told.neighbours if n.tied)
    assert all(("a tie" in n.effect) == n.tied for n in told.neighbours)


@pytest.mark.slow
def test_a_neighbour_says_what_the_recompute_of_the_plan_would_hold() -> None:
    job = case({"tp": 1, "pp": 1, "cp": 1, "micro_batch": {"max": 8}}, seq_len=8192)
    answer = explain(job, PartialLayout(), time_limit=120)
    assert answer.best is not None
    changed_too = [n for n in answer.neighbours if "(recompute " in n.change and n.fits]
    assert changed_too
    for each in changed_too:
        assert re.search(r"with recompute \w+ stage 0 reaches [\d.]+ of", each.effect)


@pytest.mark.slow
def test_the_robust_plan_is_explained_in_place_of_the_fastest() -> None:
    job = case(
        {"tp": {"max": 2}, "pp": 1, "recompute": ["none", "full"]},
        model="llama-3-8b",
        cluster="dgx-a100-1-node",
        framework="megatron",
        seq_len=8192,
        global_batch=128,
    )
    plain, chosen = (optimize(job.workloads, robust=robust) for robust in (False, True))
    assert chosen.plans[0].layout != plain.plans[0].layout
    answer = explain(job, PartialLayout(), time_limit=120, robust=True)
    assert answer.robust
    assert answer.best is not None
    assert answer.best.layout == chosen.plans[0].layout
    assert answer.runner_up == chosen.explanation.runner_up
    assert answer.tie == chosen.tie
    # Prices and fronts are of the fastest within the limit on the risk.
    fastest = min(plan.estimate.step_time_s.value for plan in chosen.plans)
    assert fastest > plain.plans[0].estimate.step_time_s.value
    assert answer.memory_front[0].step_time_s == fastest
    assert all(price.step_time_s <= fastest for price in answer.limits)


@pytest.mark.slow
def test_a_plan_at_risk_is_told_the_price_of_a_safe_one() -> None:
    job = case(
        {"pp": 1, "cp": 1, "micro_batch": {"max": 2}, "sp": True},
        model="llama-3-8b",
        cluster="dgx-a100-1-node",
        framework="megatron",
        seq_len=8192,
    )
    listed = optimize(job.workloads, top=50).plans
    assert listed[0].estimate.memory.verdict == "at-risk"
    told = safe_choice(job, listed[0], Clock(60))
    slower = re.search(r"is ([\d.]+)% slower$", told)
    assert slower is not None
    # Of all plans of the space that are listed, the fastest with room for the error.
    safe = [plan for plan in listed if plan.estimate.memory.verdict == "fits"]
    assert float(slower[1]) == pytest.approx(100 * safe[0].slower, abs=0.06)


@pytest.mark.slow
def test_a_safe_plan_has_no_price(told: Explained) -> None:
    assert told.best is not None
    assert (told.safe == "") == (told.best.estimate.memory.verdict == "fits")


@pytest.mark.slow
@pytest.mark.parametrize(
    "job",
    [
        case({"pp": {"max": 2}}, model="llama-3.2-3b", seq_len=8192),
        case({"tp": 1}, cluster="dgx-a100-4-nodes", model="llama-2-7b"),
        case({"cp": 1}, cluster="dgx-a100-4-nodes", framework="megatron"),
        case({"recompute": "full"}, cluster="dgx-h100-4-nodes", model="llama-2-7b"),
    ],
)
def test_prices_and_better_machines_are_those_of_planning_anew(job: Case) -> None:
    answer = explain(job, PartialLayout(), time_limit=600)
    assert answer.best is not None
    best = answer.best.estimate.step_time_s.value
    for limit, price in zip(narrowing(job), answer.limits, strict=True):
        wider = optimize(job.assigned(limit.assignments).workloads, top=1)
        step = wider.plans[0].estimate.step_time_s.value
        assert price.step_time_s == pytest.approx(min(step, best))
    (workload,) = job.workloads
    for better, told in zip(betters(workload), answer.sensitivities, strict=True):
        there = better.edit(workload)
        assert told.step_time_s == predict_same(there, answer.best)
        anew = optimize([there], top=1).plans[0].estimate.step_time_s.value
        assert told.best_step_time_s == pytest.approx(min(anew, told.step_time_s))


def narrowing(job: Case) -> list[InForce]:
    return [
        limit
        for limit in limits_in_force(job)
        if limit.field.startswith(("search.", "framework")) and limit.assignments
    ]


def predict_same(workload: Workload, plan: RankedPlan) -> float:
    return estimate(workload, plan.layout).step_time_s.value


def test_only_plans_as_fast_as_a_known_step_are_sought() -> None:
    best = optimize(JOB.workloads, top=1)
    step = best.plans[0].estimate.step_time_s.value
    same = optimize(JOB.workloads, top=1, known_s=step * (1 + 1e-9))
    assert same.plans[0].layout == best.plans[0].layout
    assert same.status == "optimal"
    none = optimize(JOB.workloads, top=1, known_s=step * (1 - 1e-6))
    assert none.plans == ()
    assert none.status == "optimal"
    assert none.objective.bound == pytest.approx(best.objective.bound, rel=1e-5)


@pytest.mark.slow
def test_a_limit_costs_what_a_search_without_it_saves(told: Explained) -> None:
    assert told.best is not None
    step = told.best.estimate.step_time_s.value
    prices = {price.limit: price for price in told.limits}
    wider = optimize(JOB.assigned(("search.tp=null",)).workloads, top=1)
    found = wider.plans[0].estimate.step_time_s.value
    assert prices["tp <= 2"].step_time_s == min(found, step)
    assert all(price.gain >= 0 for price in told.limits)


@pytest.mark.slow
def test_better_machines_are_priced_on_the_same_plan(told: Explained) -> None:
    assert told.best is not None
    step = told.best.estimate.step_time_s.value
    found = {each.change: each for each in told.sensitivities}
    # One per cent of the matrix products is less than one per cent of the step.
    assert 0 < found["+1 % GEMM efficiency"].gain < 0.01
    # One node: no NIC carries anything.
    assert found["+10 % NIC bandwidth"].gain == 0
    assert found["+16 GB HBM"].step_time_s == step
    assert all(s.best_step_time_s <= s.step_time_s for s in told.sensitivities)
    larger = JOB.edited(with_capacity(JOB.workloads[0].gpu.memory_capacity + 16e9))
    best = optimize(larger.workloads, top=1).plans[0].estimate.step_time_s.value
    assert found["+16 GB HBM"].best_step_time_s == min(best, step)


def test_what_is_better_of_a_machine_is_nothing_else() -> None:
    (workload,) = case({}, cluster="dgx-a100-4-nodes").workloads
    cluster = workload.topology.cluster
    edited = {b.words: b.edit(workload) for b in betters(workload)}
    nic = edited["+10 % NIC bandwidth"].topology.cluster
    assert nic.nic.bandwidth == pytest.approx(1.1 * cluster.nic.bandwidth)
    assert replace(nic, nic=cluster.nic) == cluster
    memory = edited["+16 GB HBM"].topology.cluster
    assert memory.gpu.memory_capacity == cluster.gpu.memory_capacity + MORE_MEMORY
    wide = edited["2x scale-up domain"].topology.cluster
    assert wide.node.scale_up_domain == 2 * cluster.node.scale_up_domain
    gemm = edited["+1 % GEMM efficiency"].calibration.gemm["bf16"]
    before = workload.calibration.gemm["bf16"].efficiency
    assert gemm.efficiency == pytest.approx(1.01 * before)


@pytest.mark.slow
def test_every_rank_is_bound_by_something_that_it_has(told: Explained) -> None:
    assert told.best is not None
    stages = told.best.estimate.memory.stages
    assert [b.device_gib for b in told.binding] == [s.device for s in stages]
    assert all(0 < b.busy <= 1 for b in told.binding)
    for each in told.binding:
        full = each.device_gib >= 0.97 * each.capacity_gib
        assert (each.resource == "memory") == full


@pytest.mark.slow
def test_no_point_of_a_front_is_beaten_and_memory_is_what_it_says(
    told: Explained,
) -> None:
    points = told.memory_front
    assert told.best is not None
    assert points[0].layout == told.best.layout
    for faster, slower in pairwise(points):
        assert faster.step_time_s < slower.step_time_s
        assert faster.device_gib > slower.device_gib
    # The last is the most frugal layout, which was not sought for its speed.
    for point in points[1:-1]:
        roomy = JOB.edited(with_capacity(point.device_gib * GIB))
        found = optimize(roomy.workloads, top=1).plans
        assert not found or found[0].estimate.step_time_s.value <= point.step_time_s
    for faster, slower in pairwise(told.gpu_front):
        assert faster.gpus > slower.gpus


@pytest.mark.slow
def test_a_given_layout_is_told_its_gain_and_the_fewest_changes(
    told: Explained,
) -> None:
    (workload,) = JOB.workloads
    given = predict(workload, read_layout(GIVEN))
    assert told.best is not None
    assert told.given is not None
    before = given.estimate.step_time_s.value
    best = told.best.estimate.step_time_s.value
    assert told.given.step_time_s == before
    assert told.given.gain == pytest.approx(1 - best / before)
    few = told.given.fewest
    assert few is not None
    assert few.share >= MOST
    alone = predict(workload, read_layout(after(GIVEN, few.changes)))
    assert alone.estimate.step_time_s.value == few.step_time_s
    single = told.given.single
    assert single is not None
    assert sum(" -> " in words for words in single.changes) == 1
    assert single.share <= few.share
    alone = predict(workload, read_layout(after(GIVEN, single.changes)))
    assert alone.estimate.step_time_s.value == single.step_time_s


def after(layout: str, changes: Sequence[str]) -> str:
    """A layout in its short form with `axis old -> new` put in.

    A new split of the layers is left to the prediction.
    """
    fields = dict(pair.split("=") for pair in layout.split(","))
    for words in changes:
        name, _, rest = words.partition(" ")
        if " -> " in rest:
            fields[name] = rest.partition(" -> ")[2]
    return ",".join(f"{name}={value}" for name, value in fields.items())


@pytest.mark.slow
def test_all_changes_together_are_the_best_plan(told: Explained) -> None:
    (workload,) = JOB.workloads
    given = predict(workload, read_layout(GIVEN))
    assert told.best is not None
    best = told.best.layout
    every = differences(given.layout, best)
    alone = predict(workload, changed(given.layout, best, every))
    assert alone.estimate.step_time_s.value == pytest.approx(
        told.best.estimate.step_time_s.value
    )


@pytest.mark.slow
def test_a_given_layout_that_does_not_fit_says_where() -> None:
    large = case({}, seq_len=65536)
    layout = "tp=1,micro_batch=1,recompute=none"
    found = explain(large, read_layout(layout), time_limit=20)
    assert found.given is not None
    assert found.given.wrong[0].startswith("It does not fit: stage 0 reaches")
    assert found.given.fewest is not None


def test_time_that_is_over_is_said() -> None:
    found = explain(JOB, PartialLayout(), time_limit=1.0)
    assert found.left_out
    assert Clock(0.0).share(3) == 0.0

"""Schedules that split the backward: worked steps, their space, brute force."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from against_brute_force import check_inner, check_job
from cases import is_caught
from every_split import candidate_costs
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    MOST_PLANS,
    inner_problems,
    jobs,
    small_job,
    small_problem,
    tightened,
)
from strategies import framework as room
from test_search_mutations import Mutation, Patch
from tiny_models import models

from planner.cost.pipeline import linear
from planner.cost.pipeline import splits as pipeline
from planner.cost.pipeline.memory_rows import PENDING, rank_blocks
from planner.cost.pipeline.splits import step_ns
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.frameworks.stacks import with_stack
from planner.models import Architecture
from planner.planning.explanation.binding import bindings
from planner.planning.prediction.predict import predict
from planner.schedules import SPLIT, V_SHAPED, operations, uniform_makespan
from planner.search.bounds import memory_bounds as memory
from planner.search.bounds.paths import even_counts
from planner.search.solver import constraints
from planner.search.space.schedules import SEARCHED
from planner.search.space.space import Space, enumerate_space
from planner.specs.frameworks.framework import Framework
from planner.specs.layouts.layout import Layout, PartialLayout, RecomputeRange, Stage
from planner.specs.search import SearchSpec
from planner.specs.table import LayerCosts, StageCosts
from planner.verify.legality import rule_violations


def eager() -> Framework:
    """torchtitan on the stack that splits the backward."""
    return with_stack(room("torchtitan"), "torchtitan-eager")


def uniform(schedule: str, p: int, m: int, f: int, b: int, w: int) -> StageCosts:
    """Equal virtual stages of one layer; b is of the inputs alone."""
    v, copies = 1 + (schedule in V_SHAPED), 1 + (schedule == "dualpipe")
    layer = LayerCosts((f,), (b + w,), (5,), (1,), 7, 0, 0, 0, 0, weight=w, pending=3)
    return small_problem(
        schedule=schedule,
        pp=p,
        vpp=v,
        micro_batches=m,
        runs=((0, p * v // copies),),
        layers=(layer,),
        scatter_every=m,
        copies=copies,
    )


@pytest.mark.parametrize(
    ("schedule", "fbw"),
    [
        ("zb-h1", (10, 10, 10)),
        ("zb-h1", (10, 13, 7)),
        ("zb-v", (10, 10, 10)),
        ("zb-v", (10, 14, 9)),
        ("dualpipe-v", (10, 10, 10)),
        ("dualpipe-v", (10, 10, 6)),
        ("dualpipe", (10, 10, 10)),
        ("dualpipe", (10, 10, 6)),
    ],
)
@pytest.mark.parametrize(("p", "m"), [(2, 8), (4, 16), (8, 32)])
def test_equal_stages_take_the_closed_form(
    schedule: str, fbw: tuple[int, int, int], p: int, m: int
) -> None:
    """From the table's columns to the step: the papers' bubbles, to the ns."""
    costs = uniform(schedule, p, m, *fbw)
    v = costs.vpp // costs.copies
    whole = [v * time for time in fbw]
    expected = uniform_makespan(schedule, p, costs.vpp, m, *whole)
    assert step_ns(costs, even_counts(costs)) == expected


def test_worked_steps() -> None:
    """Eight stages, 32 micro-batches, F = B = W: 103 units, where 1F1B takes 117.

    In a V the half stages leave (p - 1) / 2 of 1F1B's (p - 1) 3: 96 + 3.5 units.
    """
    plain = uniform("1f1b", 8, 32, 1, 1, 1)
    assert step_ns(plain, even_counts(plain)) == 117
    split = uniform("zb-h1", 8, 32, 1, 1, 1)
    assert step_ns(split, even_counts(split)) == 103
    folded = uniform("zb-v", 8, 32, 1, 1, 1)
    assert step_ns(folded, even_counts(folded)) == 2 * 96 + 7
    twice = uniform("dualpipe", 8, 32, 1, 1, 1)
    assert step_ns(twice, even_counts(twice)) == 96 + 3 * (1 + 2 - 1)


def test_worked_memory() -> None:
    """ZB-H1 of four ranks: every rank holds 4 x 5 blocks, rank r gradients of r + 1.

    7 blocks of states, 1 beside; rank r has r + 1 micro-batches that wait for their
    W, 3 blocks each.
    """
    costs = uniform("zb-h1", 4, 16, 10, 10, 10)
    blocks = rank_blocks(costs, even_counts(costs)).tolist()
    assert blocks == [7 + 20 + 1 + 3 * (r + 1) for r in range(4)]


def test_worked_memory_of_two_copies() -> None:
    """Every rank holds two stages, 2 x 7 blocks, and p + 1 micro-batches of 5."""
    costs = uniform("dualpipe", 4, 16, 10, 10, 10)
    blocks = rank_blocks(costs, even_counts(costs)).tolist()
    assert blocks == [14 + 5 * 5 + 1] * 4


def test_no_rank_works_longer_than_the_step() -> None:
    """Half of the micro-batches pass each of the two stages of a rank."""
    stack = with_stack(room("megatron"), "deepseek-v3")
    job = replace(small_job(SearchSpec(), sequences=32), framework=stack)
    given_layout = PartialLayout(pp=4, dp=2, schedule="dualpipe", recompute="none")
    plan = predict(job, given_layout)
    busy = [rank.busy for rank in bindings(job, plan)]
    assert all(0.3 < share <= 1 for share in busy)
    parts = plan.estimate.time_breakdown_s.model_dump()
    assert sum(parts.values()) == pytest.approx(plan.estimate.step_time_s.value)
    assert min(parts.values()) >= 0


split_problems = inner_problems().filter(lambda costs: costs.schedule in SPLIT)


@settings(max_examples=examples(150))
@given(split_problems)
def test_the_solver_equals_brute_force(costs: StageCosts) -> None:
    check_inner(costs)


@given(split_problems, st.data())
def test_longer_operations_never_shorten_the_step(
    costs: StageCosts, data: st.DataObject
) -> None:
    counts = even_counts(costs)
    name = data.draw(st.sampled_from(["forward", "backward"]))
    more = data.draw(st.integers(0, 50))
    layers = tuple(
        replace(layer, **{name: tuple(t + more for t in getattr(layer, name))})
        for layer in costs.layers
    )
    assert step_ns(replace(costs, layers=layers), counts) >= step_ns(costs, counts)


def never(_: Any) -> Any:
    return lambda _: False


def pending_times(factor: int) -> Any:
    """Rows of the passes with more or fewer gradients that wait for their W."""
    weights = np.where(np.arange(4) == PENDING, factor, 1)[:, None, None]

    def change(true: Any) -> Any:
        def broken(costs: Any) -> Any:
            passes, *idle = true(costs)
            return (replace(passes, weights=weights * passes.weights), *idle)

        return broken

    return change


def replaced(places: list[Any], name: str, change: Any) -> Mutation:
    def mutate(patch: Patch) -> None:
        true = getattr(places[0], name)
        for place in places:
            patch.setattr(place, name, change(true))

    return mutate


BROKEN = {
    "paths forget that W is on its own": replaced([linear], "splits_backward", never),
    "the solver forgets what waits for W": replaced(
        [constraints], "passing_rows", pending_times(0)
    ),
    "ranks are said to hold less": replaced([memory], "passing_rows", pending_times(2)),
    "durations without W": replaced([pipeline], "splits_backward", never),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_split_is_caught(name: str, monkeypatch: Patch) -> None:
    BROKEN[name](monkeypatch)
    assert is_caught(name)


@pytest.mark.hypothesis
@pytest.mark.parametrize("family", ["llama", "mixtral"])
def test_whole_jobs_equal_brute_force(family: str) -> None:
    """Any small job on the eager stack, some of its schedules named."""
    words = st.sets(st.sampled_from(eager().limits.schedules), min_size=1)

    @settings(max_examples=examples(15))
    @given(
        jobs(eager(), family, MOST_PLANS // 4), words, st.sampled_from([None, (1, 2)])
    )
    def best(pricing: Pricing, schedules: set[str], vpp: object) -> None:
        named = {"schedule": tuple(schedules), "vpp": vpp}
        search = pricing.search.model_copy(update=named)
        pricing = replace(pricing, search=search)
        if len(enumerate_space(pricing)) < 60:
            check_job(pricing)

    best()


@pytest.mark.hypothesis
@pytest.mark.parametrize("family", ["llama", "deepseek_v3"])
def test_two_copies_of_a_model_equal_brute_force(family: str) -> None:
    """DualPipe beside 1F1B on its own stack, whole jobs with all their splits."""
    stack = with_stack(room("megatron"), "deepseek-v3")
    limits = {"pp": [2, 4], "tp": 1, "cp": 1, "micro_batch": 1, "recompute": "none"}
    search = SearchSpec.model_validate(limits | {"schedule": ["1f1b", "dualpipe"]})

    @settings(max_examples=examples(10))
    @given(models(family), st.sampled_from([32, 64]), st.floats(0.3, 1.5))
    def best(model: Architecture, sequences: int, share: float) -> None:
        job = small_job(search, sequences=sequences)
        job = replace(job, framework=stack, model=model)
        space = enumerate_space(job)
        table = fill_table(job, space.meshes, space.recompute)
        costs = candidate_costs(table, space, len(space) - 1)
        peak = int(rank_blocks(costs, even_counts(costs)).max())
        job = tightened(job, int(peak * share))
        assert found(enumerate_space(job), "dualpipe")
        check_job(job)

    best()


def space_of(**limits: object) -> tuple[Pricing, Space]:
    search = SearchSpec.model_validate({"tp": 1, "cp": 1} | limits)
    job = small_job(search, name="torchtitan", sequences=48)
    workload = replace(job, framework=eager())
    return workload, enumerate_space(workload)


def found(space: Space, schedule: str) -> set[tuple[int, int, int]]:
    """Ranks, chunks and micro-batches of a schedule's candidates."""
    at = np.flatnonzero(space.schedules == SEARCHED.index(schedule))
    meshes = space.meshes.take(space.mesh[at])
    columns = meshes.pp, space.vpp[at], meshes.micro_batches
    return set(zip(*(column.tolist() for column in columns), strict=True))


def exists(schedule: str, p: int, v: int, m: int) -> bool:
    try:
        operations(schedule, p, v, m)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("schedule", ["zb-v", "dualpipe-v"])
def test_a_schedule_is_there_wherever_it_exists(schedule: str) -> None:
    """Six layers: every pipeline whose 2 p stages they and the ends can fill."""
    _, space = space_of(space="full")
    pipelines, micros = space.meshes.pp.tolist(), space.meshes.micro_batches.tolist()
    shapes = set(zip(pipelines, micros, strict=True))
    legal = {(p, 2, m) for p, m in shapes if 1 < p <= 4 and exists(schedule, p, 2, m)}
    assert found(space, schedule) == legal != set()
    _, named = space_of(schedule=schedule, micro_batch=[1, 2])
    assert 0 < len(found(named, schedule))
    assert set(named.schedules.tolist()) == {SEARCHED.index(schedule)}


def test_the_default_space_splits_no_backward() -> None:
    _, space = space_of()
    assert not {name for name in SPLIT if found(space, name)}


def test_nothing_is_recomputed_where_the_backward_is_split() -> None:
    """One kind is left of the menu; verify says the same of the others."""
    workload, space = space_of(space="full")
    split = np.isin(space.schedules, [SEARCHED.index(name) for name in SPLIT])
    kinds = {space.recompute[entry] for entry in space.menu[split].tolist()}
    assert kinds == {"none"}
    assert {space.recompute[entry] for entry in space.menu[~split]} > kinds
    rule = "recompute where the backward is split"
    assert space.removed[rule] == split.sum() * (len(space.recompute) - 1)
    wrong = rule_violations(workload, recomputed_layout())
    assert [breach.sentence for breach in wrong] == [
        "torchtitan recomputes nothing under zb-v, which splits the backward: full"
    ]


def recomputed_layout() -> Layout:
    """Six layers in a V of two ranks, all of them run again."""
    return Layout(
        pp=2,
        vpp=2,
        dp=4,
        dp_shard=4,
        zero_stage=2,
        micro_batch=1,
        grad_accum=12,
        schedule="zb-v",
        stages=tuple(
            Stage(
                layers=count,
                recompute=(RecomputeRange(start=0, stop=count, kind="full"),),
            )
            for count in (1, 2, 2, 1)
        ),
    )

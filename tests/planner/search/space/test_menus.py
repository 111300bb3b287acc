"""Kinds of recompute that a search looks at; one that is beaten is never best."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from every_split import (
    best_of_space,
    candidate_costs,
    cheapest_split,
    count_plans,
)
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import framework, inner_problems, jobs, small_job
from tiny_models import FAMILIES

from planner.cost.pipeline.in_flight import peak_vectors
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.models import preset
from planner.search.space import menus
from planner.search.space.menus import BEATEN, beaten, convex_part, offered, searched
from planner.search.space.space import enumerate_space
from planner.specs.search import SearchSpec
from planner.specs.table import StageCosts


def job(model: str, **search: object) -> Pricing:
    workload = small_job(SearchSpec.model_validate(search), nodes=2)
    return replace(workload, model=preset(model))


PLAIN = ("none", "selective", "full")


@pytest.mark.parametrize(
    ("model", "search", "more"),
    [
        ("llama-3-8b", {}, ()),
        ("llama-3-8b", {"space": "full"}, ("mlp",)),
        ("llama-3-8b", {"recompute": "core_attn+mlp"}, ("core_attn+mlp",)),
        ("llama-3-8b", {"recompute": ["none", "moe"]}, ()),
        ("llama-3-8b", {"space": "full", "recompute": ["none"]}, ()),
        (
            "mixtral-8x7b",
            {"space": "full"},
            ("layernorm", "moe_act", "moe", "layernorm+moe_act", "layernorm+moe"),
        ),
        ("mixtral-8x7b", {"recompute": ["moe_act", "moe"]}, ("moe_act", "moe")),
        ("mixtral-8x7b", {}, ("moe_act",)),
        ("deepseek-v3", {}, ("moe_act", "layernorm+mla_up_proj+moe_act")),
    ],
)
def test_kinds_of_a_space(model: str, search: object, more: tuple[str, ...]) -> None:
    """Combinations in the full space, and those that the user lists in any."""
    assert offered(job(model, **search)) == PLAIN + more  # type: ignore[arg-type]


def test_unfused_attention_may_recompute_its_core_beside_the_rest() -> None:
    workload = job("llama-3-8b", space="full")
    profile = workload.profile.model_copy(update={"attention_kernel": "unfused"})
    unfused = replace(workload, framework=replace(workload.framework, profile=profile))
    assert offered(unfused) == (*PLAIN, "mlp", "core_attn+mlp")


def test_a_space_holds_the_kinds_that_the_user_lists() -> None:
    space = enumerate_space(job("llama-3-8b", recompute=["none", "mlp"]))
    assert space.recompute == ("none", "mlp")
    assert set(space.menu.tolist()) == {0, 1}


def test_of_many_kinds_the_convex_part_is_searched() -> None:
    """Not one of the 39 of DeepSeek-V3, but those that free most per second."""
    workload = job("deepseek-v3", space="full", tp=1, pp=4, zero_stage=1)
    removed: Counter[str] = Counter()
    meshes = enumerate_space(replace(workload, search=SearchSpec(tp=1, pp=4))).meshes
    menu = offered(workload)
    left = searched(workload, meshes.packed, menu, removed)
    assert len(menu) == len(PLAIN) + 39
    assert PLAIN == left[:3]
    assert len(PLAIN) < len(left) <= menus.MOST_KINDS + len(PLAIN)
    assert sum(removed.values()) == len(menu) - len(left)


def test_no_exchange_rate_has_a_cheaper_kind_off_the_convex_part() -> None:
    """For any price of memory, a kind of the convex part costs least."""
    workload = job("deepseek-v3", space="full", tp=1, pp=4)
    meshes = enumerate_space(replace(workload, search=SearchSpec(tp=1, pp=4))).meshes
    meshes = meshes.take(np.arange(1))
    menu = offered(workload)
    part = convex_part(workload, meshes.packed, menu)
    table = fill_table(workload, meshes, menu)
    counts = [sum(n for k, n in workload.runs if k == kind) for kind in (0, 1)]
    time = np.tensordot(counts, table.forward + table.backward, axes=1)[:, 0]
    held = np.tensordot(counts, table.saved, axes=1)[:, 0]
    for rate in np.geomspace(1e-3, 1e6, 200):
        cost = time + rate * held
        least = min(cost[menu.index(name)] for name in part)
        assert least <= cost.min() * (1 + 1e-12)


@settings(max_examples=examples(40))
@given(inner_problems())
def test_the_stage_at_work_has_its_own_micro_batch_in_flight(costs: StageCosts) -> None:
    """What the argument of dominance rests on, for every schedule and moment."""
    shape = costs.schedule, costs.pp, costs.vpp, costs.micro_batches
    for peaks in peak_vectors(*shape):
        for peak in peaks:
            assert peak.counts[peak.chunk] >= 1


def worse(costs: StageCosts, more: list[int]) -> StageCosts:
    """The same with one more kind, beaten by the last one of the menu.

    It saves less or more, but saved and transient together are no less.
    """

    def grown(values: tuple[int, ...], by: int) -> tuple[int, ...]:
        return (*values, values[-1] + by)

    layers = tuple(
        replace(
            layer,
            forward=grown(layer.forward, more[0]),
            backward=grown(layer.backward, more[1]),
            saved=grown(layer.saved, more[2]),
            transient=grown(layer.transient, max(more[3] - more[2], 0)),
        )
        for layer in costs.layers
    )
    idle = tuple(
        replace(
            moment,
            layers=tuple(grown(row, more[2]) for row in moment.layers),
            beside=tuple(
                grown(row, max(more[3] - more[2], 0)) for row in moment.beside
            ),
        )
        for moment in costs.idle
    )
    return replace(costs, menu=(*costs.menu, "worse"), layers=layers, idle=idle)


@settings(max_examples=examples(60))
@given(inner_problems(), st.lists(st.integers(0, 40), min_size=4, max_size=4))
def test_a_beaten_kind_makes_no_problem_faster(
    costs: StageCosts, more: list[int]
) -> None:
    """With it or without it, alone or mixed in, the fastest split takes as long."""
    both = worse(costs, more)
    assume(count_plans(both) <= 600)
    without, beside = cheapest_split(costs), cheapest_split(both)
    assert (without is None) == (beside is None)
    if without is not None and beside is not None:
        assert without[0] == beside[0]


LISTED = {
    "llama": ("none", "mlp", "dear", "full"),
    "gpt2": ("core_attn+mlp", "mlp", "dear"),
    "mixtral": ("none", "layernorm+moe_act", "moe_act", "dear"),
    "deepseek_v3": ("mla_up_proj", "moe_act", "dear", "full"),
}
COPIED = {"llama": "mlp", "gpt2": "mlp", "mixtral": "moe_act", "deepseek_v3": "moe_act"}


def with_dear(pricing: Pricing, family: str, **search: object) -> Pricing:
    """The job with one more module: another, and the output projection beside it."""
    framework, modules = pricing.framework, pricing.recipe.modules
    copied = modules[COPIED[family]]
    gemms = (*copied.gemms, "attention_out")
    dear = copied.model_copy(update={"gemms": gemms})
    recipe = replace(pricing.recipe, modules={**modules, "dear": dear})
    names = (*framework.limits.recompute_modules, "dear")
    limits = replace(framework.limits, recompute_modules=names)
    return replace(
        pricing,
        framework=replace(framework, recipe=recipe, limits=limits),
        search=pricing.search.model_copy(update=search),
    )


@pytest.mark.hypothesis
@pytest.mark.parametrize("family", FAMILIES)
def test_no_reduction_of_the_menu_loses_the_best_plan(family: str) -> None:
    """Brute force over all kinds and over those that are left, on whole jobs."""

    @settings(max_examples=examples(8))
    @given(jobs(framework("megatron"), family, most=1000))
    def same(pricing: Pricing) -> None:
        pricing = with_dear(pricing, family, recompute=LISTED[family])
        reduced = enumerate_space(pricing)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(menus, "beaten", lambda *_: frozenset())
            whole = enumerate_space(pricing)
        assert set(whole.recompute) - set(reduced.recompute) >= {"dear"}
        assert reduced.removed[BEATEN] == len(whole.recompute) - len(reduced.recompute)
        tables = [
            fill_table(pricing, space.meshes, space.recompute)
            for space in (whole, reduced)
        ]
        problems = [
            candidate_costs(tables[0], whole, index) for index in range(len(whole))
        ]
        assume(sum(map(count_plans, problems)) < 3000)
        best = [
            best_of_space(table, space)
            for table, space in zip(tables, (whole, reduced), strict=True)
        ]
        steps = [None if found is None else found.step_s for found in best]
        assert steps[0] == steps[1]

    same()


def test_of_alike_kinds_the_first_stays() -> None:
    """Two names for one kind: only the later one is beaten."""
    workload = job("llama-3-8b", tp=1, pp=2)
    meshes = enumerate_space(workload).meshes
    kinds = {**workload.recipe.kinds, "again": workload.recipe.kinds["full"]}
    recipe = replace(workload.recipe, kinds=kinds)
    twice = replace(workload, framework=replace(workload.framework, recipe=recipe))
    assert beaten(twice, meshes.packed, ("none", "full", "again")) == {"again"}
    assert beaten(twice, meshes.packed, ("again", "none", "full")) == {"full"}
    assert beaten(workload, meshes.packed, PLAIN) == frozenset()


def test_a_module_that_frees_as_much_at_a_higher_price_is_beaten() -> None:
    """By the one that it copies, where that is on the menu, and by nothing else."""
    workload = job("llama-3-8b", tp=[1, 2], pp=1)
    meshes = enumerate_space(workload).meshes
    other = with_dear(workload, "llama")
    assert beaten(other, meshes.packed, ("none", "dear", "mlp", "full")) == {"dear"}
    assert beaten(other, meshes.packed, ("none", "dear", "full")) == frozenset()


def test_plain_kinds_stay_whatever_beats_them() -> None:
    """In a tiny model the host decides: selective recompute is free, and frees."""
    workload = small_job(SearchSpec(tp=1, pp=1, space="full"))
    meshes = enumerate_space(workload).meshes
    menu = offered(workload)
    assert beaten(workload, meshes.packed, menu) >= {"none"}
    assert searched(workload, meshes.packed, menu, Counter())[:3] == PLAIN

"""Blocks: the first layers of every virtual stage under full recompute."""

from dataclasses import replace

import numpy as np
import pytest
from every_split import (
    best_of_space,
    candidate_costs,
    count_plans,
    splits,
)
from strategies import priced_space, small_job, small_problem, tightened

from planner.cost.estimate.estimate import estimate
from planner.cost.pipeline.memory_rows import fits, rank_blocks
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.errors import BadInputError
from planner.job.expressible import able, refuse_inexpressible, refuse_unknown_words
from planner.planning.optimize import optimize
from planner.planning.prediction.predict import predict
from planner.search.best_first import search
from planner.search.bounds.bounds import space_bounds
from planner.search.mesh_answer import Outcome, answered_exactly
from planner.search.space.blocks import block_counts
from planner.search.space.space import Space, enumerate_space
from planner.specs.layouts.blocks import recomputed_block, with_block
from planner.specs.layouts.layout import PartialLayout, RecomputeRange, Stage
from planner.specs.layouts.recompute import block_name, block_of
from planner.specs.search import SearchSpec
from planner.verify.legality import rule_violations

DEEPSEEK = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 7,
    "kv_lora_rank": 64,
    "q_lora_rank": None,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "moe_intermediate_size": 256,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 2,
    "moe_layer_freq": 1,
}
"""Two dense layers, then five with experts."""


BLOCKS = ("full:1", "full:2", "full:4")


def job(config: dict[str, object] | None = None, **limits: object) -> Pricing:
    fields = {"tp": 1, "pp": [1, 2], "micro_batch": [1, 2], "cp": 1, "ep": 1}
    asked = SearchSpec.model_validate(fields | limits)
    return small_job(asked, config={"num_hidden_layers": 7} | (config or {}))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("full:1", 1),
        ("full:12", 12),
        *((name, 0) for name in ("full:0", "full", "full:01", "none:2", "full:")),
        *((name, 0) for name in ("full:-1", "full:1.5", "full:²", ":2", "full:2:2")),
    ],
)
def test_names_of_blocks(name: str, size: int) -> None:
    assert block_of(name) == size
    assert not size or block_name(size) == name


def test_stages_are_a_block_where_their_first_layers_alone_are_recomputed() -> None:
    block = tuple(with_block(layers, 2) for layers in (3, 2, 4, 0))
    assert recomputed_block(block) == 2
    assert block[1].recompute == (RecomputeRange(start=0, stop=2, kind="full"),)
    other = with_block(3, 1)
    late = Stage(
        layers=2,
        recompute=(
            RecomputeRange(start=0, stop=1, kind="none"),
            RecomputeRange(start=1, stop=2, kind="full"),
        ),
    )
    assert recomputed_block((*block, other)) == 0
    assert recomputed_block((*block, late)) == 0
    assert recomputed_block((with_block(2, 2), with_block(2, 2))) == 0
    assert recomputed_block((Stage(layers=3), Stage(layers=3))) == 0
    assert recomputed_block((Stage(layers=3), with_block(3, 1))) == 0


def test_the_split_of_a_block_is_even_with_its_first_layers_under_full() -> None:
    """Three dense layers and five others over 3, 3 and 2: two of each in full."""
    costs = small_problem(
        pp=3,
        runs=((0, 3), (1, 2), (0, 3)),
        layers=small_problem().layers * 2,
        menu=("full", "none"),
        block=2,
    )
    counts = block_counts(costs)
    assert counts[..., 0].tolist() == [[2, 0], [0, 2], [2, 0]]
    assert counts[..., 1].tolist() == [[1, 0], [1, 0], [0, 0]]
    assert [split.tolist() for split in splits(costs)] == [counts.tolist()]
    assert count_plans(costs) == 1


def sizes(space: Space) -> dict[int, set[int]]:
    """Blocks by layers of the largest stage, for a model of seven layers."""
    found: dict[int, set[int]] = {}
    for at in range(len(space)):
        stages = int(space.meshes.pp[space.mesh[at]] * space.vpp[at])
        if space.block(at):
            found.setdefault(-(-7 // stages), set()).add(space.block(at))
    return found


def test_the_full_space_has_quarters_of_the_largest_stage() -> None:
    """Of 7 layers 2, 4 and 6; of 4 (two stages) 1, 2 and 3; of 2 one."""
    space = enumerate_space(job(space="full", gradient_dtype="fp32"))
    found = sizes(space)
    assert found[7] == {2, 4, 6}
    assert found[4] == {1, 2, 3}
    assert found[2] == {1}
    assert not sizes(enumerate_space(job()))


def test_a_listed_block_is_in_any_space_and_needs_a_larger_stage() -> None:
    space = enumerate_space(job(recompute=["full:4", "full:2"]))
    assert sizes(space) == {7: {2, 4}, 4: {2}}
    assert all(space.block(at) for at in range(len(space)))
    assert space.removed["block of recompute as large as a stage"] > 0
    both = enumerate_space(job(recompute=["selective", "full:2"]))
    plain = {both.recompute[entry] for entry in both.menu[both.menu >= 0]}
    assert plain == {"selective"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "limits"),
    [
        ({}, {"space": "full"}),
        (DEEPSEEK, {"recompute": ["none", *BLOCKS, "full"]}),
    ],
)
def test_search_and_brute_force_agree_on_blocks(
    config: dict[str, object], limits: dict[str, object]
) -> None:
    """With room for all, for some and for none; a block is best somewhere."""
    workload = job(config, **limits, gradient_dtype="fp32", vpp=1, zero_stage=1)
    space = enumerate_space(workload)
    table = fill_table(workload, space.meshes, space.recompute)
    problems = [candidate_costs(table, space, at) for at in range(len(space))]
    peaks = sorted(
        {int(rank_blocks(c, block_counts(c)).max()) for c in problems if c.block}
    )
    chosen = []
    for room in (peaks[0] - 1, *peaks[:6], *peaks[6::4]):
        tight = tightened(workload, room)
        found = search(tight)
        best = best_of_space(*priced_space(found.pricing), cap=10**6)
        assert (best is None) == (not found.ranked)
        if best is not None:
            assert found.ranked[0].step_s == best.step_s == found.bound_s
            chosen.append(found.space.block(found.ranked[0].candidate))
    assert any(chosen)
    assert not all(chosen)


@pytest.mark.parametrize("config", [{}, DEEPSEEK])
def test_no_first_bound_is_above_a_block(config: dict[str, object]) -> None:
    workload = job(config, space="full", gradient_dtype="fp32")
    space = enumerate_space(workload)
    table = fill_table(workload, space.meshes, space.recompute)
    bounds, tight = space_bounds(table, space), 0
    free = replace(space, menu=np.where(space.menu < 0, -1, space.menu))
    loose = space_bounds(table, free)
    for at in range(len(space)):
        costs = candidate_costs(table, space, at)
        if costs.block:
            answer = answered_exactly(costs)
            assert answer.outcome is Outcome.SOLVED
            assert answer.value is not None
            assert bounds.fits[at]
            assert bounds.step[at] <= answer.value * costs.slowdown / 1e9
            tight += bounds.step[at] > loose.step[at]
    assert tight > 0


def test_a_block_that_does_not_fit_is_no_plan() -> None:
    space = enumerate_space(workload := job(recompute="full:2", pp=1))
    table = fill_table(workload, space.meshes, space.recompute)
    costs = candidate_costs(table, space, 0)
    peak = int(rank_blocks(costs, block_counts(costs)).max())
    assert answered_exactly(replace(costs, budget=peak)).outcome is Outcome.SOLVED
    assert (
        answered_exactly(replace(costs, budget=peak - 1)).outcome is Outcome.INFEASIBLE
    )
    assert fits(replace(costs, budget=peak), block_counts(costs))


def test_a_plan_with_blocks_is_verified_and_read_back() -> None:
    """The flow verifies it; its words are a layout that predicts the same."""
    workload = job(DEEPSEEK, recompute="full:2", pp=2, zero_stage=1, vpp=1)
    result = optimize([workload], top=1)
    assert result.status == "optimal"
    layout = result.plans[0].layout
    assert recomputed_block(layout.stages) == 2
    given = PartialLayout(
        **{axis: getattr(layout, axis) for axis in ("pp", "dp", "micro_batch")},
        zero_stage=1,
        recompute="full:2",
    )
    predicted = predict(workload, given)
    assert predicted.layout.stages == layout.stages
    step = result.plans[0].estimate.step_time_s.value
    assert predicted.estimate.step_time_s.value == step
    by_stage = predict(
        workload, given.model_copy(update={"recompute": None, "stages": layout.stages})
    )
    assert by_stage.estimate.step_time_s.value == step


def test_a_block_lies_between_none_and_full() -> None:
    """Every layer more costs time and frees memory."""
    workload = job(pp=1)
    found = []
    for name in ("none", "full:1", "full:4", "full:6", "full"):
        given = PartialLayout(dp=8, micro_batch=2, zero_stage=1, recompute=name)
        priced = estimate(workload, predict(workload, given).layout)
        step = priced.step_time_s.value
        found.append((step, -priced.memory.peak_device_gib.value))
    assert found == sorted(found)
    assert len({step for step, _ in found}) == len(found)


def test_only_some_frameworks_have_blocks() -> None:
    limits = SearchSpec(recompute="full:2")
    refuse_unknown_words(limits)
    assert able("recompute", limits) == ("megatron",)
    titan = small_job(limits, name="torchtitan")
    with pytest.raises(BadInputError, match="frameworks that can: megatron"):
        refuse_inexpressible([titan])
    stages = tuple(with_block(layers, 1) for layers in (3, 3))
    layout = predict(job(), PartialLayout(pp=2, dp=4, recompute="full:1")).layout
    assert rule_violations(job(), layout) == []
    wrong = layout.model_copy(update={"stages": stages, "zero_stage": 2})
    found = rule_violations(small_job(SearchSpec(), name="torchtitan"), wrong)
    said = "torchtitan has one recompute kind per plan, this has 2: full, none"
    assert said in {breach.sentence for breach in found}

"""What the space leaves out as the same layout under another name is the same."""

from dataclasses import fields, replace

import numpy as np
import pytest
from every_split import splits
from examples import examples
from hypothesis import given, settings
from strategies import inner_problems, small_job

from planner.cost.meshes import Ints
from planner.cost.pipeline.memory_rows import rank_blocks
from planner.cost.pipeline.splits import step_ns
from planner.cost.pricing import Pricing
from planner.cost.reach import Mask
from planner.cost.table.table import CostTable, fill_table
from planner.search.space.space import enumerate_space
from planner.specs.search import SearchSpec
from planner.specs.table import StageCosts


def columns(table: CostTable) -> list[Ints]:
    """Every number of a table that depends on the mesh."""
    named = {f.name: getattr(table, f.name) for f in fields(table)}
    plain = [value for value in named.values() if isinstance(value, np.ndarray)]
    units = [*table.units, table.embedding.unit, table.head.unit]
    return [*plain, *(getattr(unit, f.name) for unit in units for f in fields(unit))]


def turned(job: Pricing, mask: Mask) -> tuple[CostTable, CostTable]:
    """The meshes under the mask, and the same with the other rank order."""
    space = enumerate_space(job)
    meshes = space.meshes.take(mask)
    other = replace(meshes, order=1 - meshes.order)
    menu = space.recompute
    return fill_table(job, meshes, menu), fill_table(job, other, menu)


def wide(name: str) -> Pricing:
    return small_job(SearchSpec(), name=name, nodes=2, sequences=16)


@pytest.mark.parametrize("name", ["megatron", "torchtitan"])
def test_both_orders_are_one_without_stages_or_without_replicas(name: str) -> None:
    meshes = enumerate_space(wide(name)).meshes
    alike = (meshes.pp == 1) | (meshes.dp == 1)
    assert alike.any()
    one, other = turned(wide(name), alike)
    pairs = zip(columns(one), columns(other), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", ["megatron", "torchtitan"])
def test_the_orders_differ_where_both_are_listed(name: str) -> None:
    """Else the test above could not fail."""
    meshes = enumerate_space(wide(name)).meshes
    one, other = turned(wide(name), (meshes.pp > 1) & (meshes.dp > 1))
    pairs = zip(columns(one), columns(other), strict=True)
    assert not all(np.array_equal(a, b) for a, b in pairs)


@settings(max_examples=examples(60))
@given(inner_problems())
def test_gpipe_with_one_micro_batch_is_1f1b(costs: StageCosts) -> None:
    plain = replace(flat(costs), micro_batches=1, scatter_every=1)
    other = replace(plain, schedule="gpipe")
    for split in list(splits(plain))[:10]:
        assert step_ns(plain, split) == step_ns(other, split)
        assert rank_blocks(plain, split).tolist() == rank_blocks(other, split).tolist()


@settings(max_examples=examples(60))
@given(inner_problems())
def test_gpipe_on_one_stage_is_never_better_than_1f1b(costs: StageCosts) -> None:
    """The same work on one rank, whose gradients leave no earlier."""
    plain = replace(flat(costs), pp=1)
    other = replace(plain, schedule="gpipe")
    for split in list(splits(plain))[:10]:
        assert step_ns(plain, split) <= step_ns(other, split)
        assert (rank_blocks(plain, split) <= rank_blocks(other, split)).all()


def flat(costs: StageCosts) -> StageCosts:
    """The problem on one chunk a rank, which every schedule of one chunk has."""
    return replace(costs, schedule="1f1b", pp=costs.stages, vpp=1, copies=1)

"""What a host holds at most is never less than what any split makes it hold."""

from dataclasses import replace
from itertools import islice

import pytest
from every_split import candidate_costs, count_plans, splits
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import framework, jobs, small_job, with_host_memory

from planner.cost.estimate.estimate import memory_estimate
from planner.cost.estimate.host_bound import host_bound, leaves_the_gpus
from planner.cost.estimate.layouts import layout_of
from planner.cost.estimate.pricing import price
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.schedules import SPLIT, V_SHAPED
from planner.search.space.schedules import SEARCHED
from planner.search.space.space import enumerate_space
from planner.specs.layouts.layout import Layout, Offload
from planner.specs.search import SearchSpec

GIB = 2**30
SHARES = st.sampled_from([0.0, 0.5, 1.0])
NO_ROUNDING = 1 + 1e-9
MOST = 500
"""Splits of a candidate to draw one from. [1]"""


def needed(pricing: Pricing, layout: Layout) -> float:
    """What the fullest node holds, exactly. [B]."""
    host = memory_estimate(price(pricing, layout)).host
    return host.needed_gib * GIB if host is not None else 0.0


def bound(pricing: Pricing, layout: Layout, most: int) -> float:
    """What it holds at most with so many layers on a virtual stage. [B]."""
    meshes = Meshes.of_layout(layout)
    names = tuple({part.kind for s in layout.stages for part in s.recompute})
    one = meshes.pp // meshes.pp
    return float(
        host_bound(
            pricing,
            meshes,
            vpp=one * layout.vpp,
            layers=one * most,
            recompute=names or ("none",),
            at_once=one * (layout.schedule == "gpipe") > 0,
            folded=one * (layout.schedule in V_SHAPED) > 0,
            copies=one + one * (layout.schedule == "dualpipe"),
            split=one * (layout.schedule in SPLIT) > 0,
        )[0]
    )


@st.composite
def offloading(draw: st.DrawFn, name: str) -> tuple[Pricing, Layout, int]:
    """A random layout of a small job, any of its splits, anything in host memory."""
    room = framework(name)
    every = replace(room, limits=replace(room.limits, schedules=SEARCHED))
    workload = draw(jobs(every, draw(st.sampled_from(["llama", "mixtral"]))))
    space = enumerate_space(workload)
    at = draw(st.integers(0, len(space) - 1))
    table = fill_table(workload, space.meshes, space.recompute)
    costs = candidate_costs(table, space, at)
    which = draw(st.integers(0, min(count_plans(costs), MOST) - 1))
    chosen = next(islice(splits(costs), which, None))
    row, vpp = int(space.mesh[at]), int(space.vpp[at])
    zero = int(space.meshes.zero[row])
    offload = Offload(
        optimizer=draw(SHARES),
        gradients=draw(SHARES) if zero >= 2 else 0.0,
        parameters=draw(SHARES) if zero == 3 else 0.0,
        activations=draw(SHARES),
    )
    there = replace(workload, offload=offload)
    layout = layout_of(
        there,
        space.meshes,
        row,
        schedule=costs.schedule,
        vpp=vpp,
        menu=costs.menu,
        counts=chosen,
    )
    return there, layout, costs.most_layers


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", ["megatron", "torchtitan"])
def test_no_split_needs_more_than_the_bound(name: str) -> None:
    """Any offload of any layout, over pipelines, chunks, orders and experts."""

    @settings(max_examples=examples(100))
    @given(offloading(name))
    def bounded(drawn: tuple[Pricing, Layout, int]) -> None:
        workload, layout, most = drawn
        assert needed(workload, layout) <= bound(workload, layout, most) * NO_ROUNDING

    bounded()


def flat(**shares: float) -> tuple[Pricing, Layout]:
    """Eight ranks of ZeRO-3 without a pipeline."""
    limits = SearchSpec(tp=1, pp=1, cp=1, micro_batch=1, zero_stage=3, dp_shard=8)
    workload = replace(small_job(limits, name="torchtitan"), offload=Offload(**shares))
    space = enumerate_space(workload)
    table = fill_table(workload, space.meshes, space.recompute)
    costs = candidate_costs(table, space, 0)
    counts = next(splits(costs))
    layout = layout_of(
        workload,
        space.meshes,
        0,
        schedule=costs.schedule,
        vpp=1,
        menu=costs.menu,
        counts=counts,
    )
    return workload, layout


def test_states_without_a_pipeline_are_exact() -> None:
    workload, layout = flat(optimizer=1.0, parameters=1.0, gradients=0.5)
    exact = needed(workload, layout)
    assert exact > 0
    assert bound(workload, layout, workload.model.layers) == pytest.approx(exact)


def test_only_what_leaves_the_gpus_is_counted() -> None:
    plain, _ = flat()
    assert not leaves_the_gpus(plain)
    assert leaves_the_gpus(flat(activations=0.5)[0])
    paged = plain.training.model_copy(update={"optimizer": "paged-adamw"})
    assert leaves_the_gpus(replace(plain, training=paged))


def test_the_space_leaves_out_what_the_host_cannot_hold() -> None:
    """Exactly enough, a byte less, and a host whose memory is not known."""
    workload, layout = flat(optimizer=1.0)
    enough = bound(workload, layout, workload.model.layers)
    assert len(enumerate_space(with_host_memory(workload, enough))) > 0
    short = enumerate_space(with_host_memory(workload, enough - 1))
    assert len(short) == 0
    assert any(rule.startswith("host memory") for rule in short.removed)
    unknown = enumerate_space(with_host_memory(workload, None))
    assert len(unknown) == len(enumerate_space(with_host_memory(workload, enough)))

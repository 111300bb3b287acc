"""Ranks of every group, listed, and what they see of the cluster."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cost import meshes as axes
from planner.hardware.graph.fabric import Fabric
from planner.hardware.graph.placement import group_view, point_to_point_view
from planner.hardware.graph.topology import ClusterTopology
from planner.specs.layouts.layout import Layout
from planner.verify.placement import (
    _levels,
    _pair_rate,
    _same_ranks,
    dense_axes,
    expert_axes,
    members_of,
    placement_violations,
    view_of,
)

INSIDE = Layout(tp=2, pp=2, dp=2, dp_shard=2, order="tp-cp-ep-pp-dp")
OUTSIDE = Layout(tp=2, pp=2, dp=2, dp_shard=2)


@pytest.mark.parametrize(
    ("layout", "along", "expected"),
    [
        (OUTSIDE, "tp", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (OUTSIDE, "shard", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        (OUTSIDE, "pp", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        (INSIDE, "shard", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        (INSIDE, "pp", [[0, 2], [1, 3], [4, 6], [5, 7]]),
    ],
)
def test_groups_of_eight_ranks_by_hand(
    layout: Layout, along: str, expected: list[list[int]]
) -> None:
    assert members_of(dense_axes(layout), {along}).tolist() == expected


def test_expert_groups_cut_across_dense_ones() -> None:
    """tp 2, dp 4: experts over four ranks take two tensor groups each."""
    layout = Layout(tp=2, dp=4, dp_shard=4, ep=4)
    groups = members_of(expert_axes(layout), {"ep"})
    assert groups.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    tp, cp, pp, shards, copies = (draw(st.integers(1, 4)) for _ in range(5))
    order = draw(st.sampled_from(["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]))
    dp, shard = shards * copies, shards * cp
    return Layout(tp=tp, cp=cp, pp=pp, dp=dp, dp_shard=shard, ep=tp * cp, order=order)


@settings(deadline=None)
@given(layouts(), st.sampled_from([{"tp"}, {"cp", "shard"}, {"replica"}, {"pp"}]))
def test_groups_partition_the_ranks(layout: Layout, along: set[str]) -> None:
    """Each rank is in one group, whose size is the product of its degrees."""
    members = members_of(dense_axes(layout), along)
    assert list(_same_ranks("any", members, layout.gpus)) == []
    sizes = dict(dense_axes(layout))
    assert members.shape[1] == np.prod([sizes[name] for name in along])
    assert (np.diff(members, axis=1) > 0).all()


def test_a_rank_in_two_groups_is_objected_to() -> None:
    (sentence,) = _same_ranks("tensor", np.array([[0, 1], [1, 2]]), 4)
    assert sentence == "tensor groups do not hold each of 4 ranks once"


def test_two_ranks_in_each_of_two_domains_by_hand() -> None:
    """A ring of four drives two NICs of 50; an all-to-all sends 2 of 3 outside."""
    fabric = Fabric(gpus=16, domain=8, scale_up=450.0, nic_share=50.0, tiers=())
    members = np.array([[0, 1, 8, 9], [2, 3, 10, 11]])
    view = view_of(fabric, members)
    assert (view.size, view.domains, view.ranks_per_domain) == (4, 2, 2)
    assert view.ring_bandwidth == pytest.approx(100.0)
    assert view.all_to_all_bandwidth == pytest.approx(50.0)
    assert view.off_domain == pytest.approx(2 / 3)


@settings(deadline=None)
@given(
    st.sampled_from([6, 8, 12]),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
    st.sampled_from([(), ((24, 3.0),), ((24, 1.0), (48, 7.0))]),
    st.sets(st.integers(0, 2), min_size=1, max_size=2),
)
def test_views_by_members_are_those_of_the_closed_forms(
    domain: int, sizes: list[int], tiers: Any, along: set[int]
) -> None:
    """Regular or not, listed ranks and formulas see the same."""
    names = ["a", "b", "c"]
    degrees = [*zip(names, sizes, strict=True), ("rest", 48)]
    gpus = int(np.prod(sizes)) * 48
    fabric = Fabric(
        gpus=gpus, domain=domain, scale_up=450.0, nic_share=50.0, tiers=tiers
    )
    members = members_of(degrees, {names[i] for i in along})
    found, levels = view_of(fabric, members), _levels(members)
    seen = group_view(fabric, levels)
    assert (found.size, found.domains) == (seen.size, seen.domains)
    assert found.ranks_per_domain == seen.ranks_per_domain
    assert found.ring_bandwidth == pytest.approx(seen.ring_bandwidth)
    assert found.off_domain == pytest.approx(seen.off_domain_fraction)
    assert found.all_to_all_bandwidth == pytest.approx(seen.all_to_all_bandwidth)


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(1, 30), st.sampled_from([(), ((24, 5.0),)]))
def test_stages_send_at_the_rate_of_the_closed_form(
    pp: int, stride: int, tiers: Any
) -> None:
    fabric = Fabric(
        gpus=pp * stride * 8, domain=8, scale_up=450.0, nic_share=50.0, tiers=tiers
    )
    members = members_of([("in", stride), ("pp", pp), ("out", 8)], {"pp"})
    pairs = np.stack([members[:, :-1].ravel(), members[:, 1:].ravel()], axis=1)
    seen = point_to_point_view(fabric, stride, pp).bandwidth
    assert _pair_rate(fabric, pairs) == pytest.approx(seen)


FIELDS = {"tp": 2, "pp": 2, "cp": 2, "dp": 8, "dp_shard": 8, "ep": 4, "zero_stage": 1}


@pytest.mark.parametrize("order", axes.ORDERS)
def test_what_was_priced_is_what_the_ranks_form(
    order: str, workload_of: Callable[..., Any]
) -> None:
    workload = workload_of(model="moe", nodes=8)
    assert list(placement_violations(workload, Layout(**FIELDS, order=order))) == []


@pytest.mark.parametrize(
    ("mistake", "factor", "objection"),
    [
        ("tensor_groups", 4, "tensor groups: "),
        ("context_groups", 4, "context groups: "),
        ("shard_groups", 4, "shard groups: "),
        ("replica_groups", 1 / 16, "replica groups: "),
        ("expert_groups", 4, "expert groups: "),
        ("expert_data_groups", 1 / 8, "expert data groups: "),
    ],
)
def test_groups_with_a_wrong_stride_are_objected_to(
    mistake: str,
    factor: float,
    objection: str,
    workload_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One axis at another stride; the others stay sound."""
    workload, true = workload_of(model="moe", nodes=8), getattr(axes, mistake)
    layout = Layout(**(FIELDS | {"tp": 4, "dp": 4, "dp_shard": 4, "ep": 8}))
    look_up = axes.groups

    def strided(topology: Any, meshes: Any, *levels: Any) -> Any:
        return look_up(
            topology,
            meshes,
            *((size, (stride * factor).astype(int)) for size, stride in levels),
        )

    def mistaken(topology: Any, meshes: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(axes, "groups", strided)
            return true(topology, meshes)

    monkeypatch.setattr(axes, mistake, mistaken)
    found = list(placement_violations(workload, layout))
    assert found
    assert all(sentence.startswith(objection) for sentence in found)


@pytest.mark.parametrize("layout", [{"dp": 64}, {"dp": 16, "cp": 4}])
@pytest.mark.parametrize("hpz", [2, 8, 16, 64])
def test_copies_lie_on_neighbouring_ranks(
    hpz: int,
    layout: dict[str, int],
    workload_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = workload_of(nodes=8)
    its = Layout(**layout, dp_shard=64, zero_stage=3, hpz=hpz)
    assert list(placement_violations(workload, its)) == []
    monkeypatch.setattr(axes, "copy_groups", axes.context_groups)
    found = list(placement_violations(workload, its))
    assert all(sentence.startswith("copy groups: ") for sentence in found)
    assert found


def test_axes_that_leave_ranks_out_are_objected_to(
    workload_of: Callable[..., Any],
) -> None:
    """Shards of 3 in 8 data ranks: two replicas of them cover 6."""
    layout = Layout(**(FIELDS | {"dp_shard": 6}))
    first = next(placement_violations(workload_of(model="moe", nodes=8), layout))
    assert first == "tensor groups do not hold each of 64 ranks once"


@pytest.mark.parametrize("nodes", [8, 64])
def test_small_clusters_are_routed_too(
    nodes: int,
    workload_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to 256 GPUs the explicit graph has a say: here a link that crawls."""
    workload = workload_of(model="moe", nodes=nodes)
    layout = Layout(**(FIELDS | {"dp": nodes, "dp_shard": nodes}))
    monkeypatch.setattr(ClusterTopology, "bottleneck", lambda *_: 1.0)
    found = list(placement_violations(workload, layout))
    text, routed = " ".join(found), nodes == 8
    assert ("a routed ring gets 1 B/s" in text) == routed
    assert ("a routed all-to-all gets 1 B/s" in text) == routed
    assert ("a stage sends at 1 B/s by its ranks" in text) == routed
    assert routed or found == []

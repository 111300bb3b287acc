"""Nodes out of service, pods of unequal size, idle GPUs: which unit a rank sits in."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec, TierSpec
from planner.hardware.graph.fabric import fabric_of
from planner.hardware.graph.placement import Levels
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED


def spec(**fields: object) -> ClusterSpec:
    given = {"name": "made", "node": "dgx-h100", "nodes": 8} | fields
    return ClusterSpec.model_validate(given)


def topology(nodes_per_domain: int = 1, **fields: object) -> ClusterTopology:
    """DGX H100 cut to four GPUs a node, so that graphs stay small."""
    cluster = resolve_cluster(spec(**fields), SHIPPED)
    shape = {"gpus_per_node": 4, "scale_up_domain": 4 * nodes_per_domain}
    node = cluster.node.model_copy(update=shape | {"nics_per_node": 4})
    return ClusterTopology(replace(cluster, node=node))


@st.composite
def broken(draw: st.DrawFn) -> ClusterTopology:
    """A cluster with pods of drawn sizes or dead nodes, used in part."""
    wide = draw(st.sampled_from([1, 1, 2]))
    pods = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    nodes = wide * sum(pods)
    dead = draw(st.sets(st.integers(0, nodes - 1), max_size=nodes - 1))
    tier = TierSpec(
        name="pod",
        gpus=8 * wide * max(pods),
        oversubscription=draw(st.sampled_from([1.0, 2.0, 7.0])),
        units=tuple(wide * pod for pod in pods),
    )
    whole = topology(wide, nodes=nodes, tiers=(tier,), out_of_service=tuple(dead))
    return whole.using(4 * draw(st.integers(1, nodes - len(dead))))


@st.composite
def levels(draw: st.DrawFn, gpus: int) -> Levels:
    stride = draw(st.sampled_from([d for d in range(1, gpus + 1) if gpus % d == 0]))
    most = gpus // stride
    size = draw(st.sampled_from([d for d in range(1, most + 1) if most % d == 0]))
    return ((size, stride),)


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_broken_fleets_see_the_bandwidths_of_the_explicit_graph(
    data: st.DataObject,
) -> None:
    here = data.draw(broken())
    drawn = data.draw(levels(here.gpus))
    view = here.group(drawn)
    assert view.ring_bandwidth == pytest.approx(here.bottleneck(drawn, "ring"))
    routed = here.bottleneck(drawn, "all-to-all")
    assert view.all_to_all_bandwidth == pytest.approx(routed)
    ((size, stride),) = drawn
    pairs = here.point_to_point(stride, size)
    routed = here.bottleneck(drawn, "point-to-point")
    assert pairs.bandwidth == pytest.approx(routed)


def test_ranks_sit_on_nodes_in_service_in_their_order() -> None:
    """Pods of 3, 3 and 2 nodes of 4 GPUs; nodes 1 and 6 are gone."""
    tier = TierSpec(name="pod", gpus=24, oversubscription=1, units=(3, 3, 2))
    fabric = topology(tiers=(tier,), out_of_service=(1, 6)).fabric
    assert fabric.gpus == 24
    assert fabric.listed(1) == (8, 12, 4)
    assert fabric.ranks_of(0).tolist() == [4] * 6


def test_nodes_missing_at_the_end_are_a_smaller_cluster() -> None:
    tier = TierSpec(name="pod", gpus=32, oversubscription=2)
    whole = topology(nodes=7, tiers=(tier,)).fabric
    assert topology(nodes=8, tiers=(tier,), out_of_service=1).fabric == whole
    assert fabric_of(topology(nodes=8, tiers=(tier,)).cluster, 28) == whole


def test_a_rack_that_lost_a_node_is_a_smaller_domain() -> None:
    """Domains of two nodes; node 1 is gone, so a group of 8 leaves its domain."""
    here = topology(2, out_of_service=(1,), nodes=5)
    assert here.fabric.listed(0) == (4, 8, 4)
    assert not here.using(8).group(((8, 1),)).intra
    assert here.using(4).group(((4, 1),)).intra
    assert topology(2, out_of_service=(1,), nodes=6).fabric.listed(0) == (4, 8, 8)


def test_more_ranks_than_gpus_in_service_are_refused() -> None:
    with pytest.raises(ValueError, match="32 ranks on 28 GPUs in service"):
        topology(out_of_service=1).using(32)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"out_of_service": 8}, "takes 8 nodes of 8; at most 7 can be missing"),
        ({"out_of_service": (3, 8)}, "nodes are 0 to 7, each once"),
        ({"out_of_service": (3, 3)}, "nodes are 0 to 7, each once"),
        (
            {"tiers": [{"name": "p", "gpus": 32, "oversubscription": 1,
                        "units": [4, 3]}]},
            "units of .4, 3. nodes are 7 in all; nodes is 8",
        ),
        (
            {"tiers": [
                {"name": "r", "gpus": 16, "oversubscription": 1, "units": [4, 4]},
                {"name": "p", "gpus": 32, "oversubscription": 1},
            ]},
            "only the outermost tier, p, may",
        ),
    ],
)  # fmt: skip
def test_what_does_not_add_up_is_refused(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        spec(**fields)


def test_a_unit_holds_whole_units_of_the_tier_inside() -> None:
    inner = {"name": "rack", "gpus": 16, "oversubscription": 1}
    outer = {"name": "pod", "gpus": 48, "oversubscription": 1, "units": [5, 3]}
    with pytest.raises(ValueError, match="a unit of 5 nodes is not whole groups of 2"):
        resolve_cluster(spec(tiers=[inner, outer]), SHIPPED)

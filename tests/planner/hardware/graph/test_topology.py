"""Placement against the explicit graph, and both against numbers worked by hand."""

import time
from math import prod

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.hardware.catalog import Cluster, cluster, link, node, resolve_cluster
from planner.hardware.catalog import gpu as catalog_gpu
from planner.hardware.fleets import ClusterSpec, TierSpec
from planner.hardware.graph import placement
from planner.hardware.graph.fabric import Fabric
from planner.hardware.graph.placement import Levels, group_view
from planner.hardware.graph.topology import ClusterTopology, _groups
from planner.hardware.reading.files import SHIPPED


def make(
    nodes: int,
    gpus_per_node: int = 8,
    nodes_per_domain: int = 1,
    nics: int = 8,
    tiers: tuple[tuple[int, float], ...] = (),
    scale_up: str = "nvlink4",
) -> ClusterTopology:
    """A cluster of H100s on some link; tiers are (GPUs, oversubscription)."""
    its_node = node("dgx-h100", SHIPPED).model_copy(
        update={
            "gpus_per_node": gpus_per_node,
            "scale_up_domain": nodes_per_domain * gpus_per_node,
            "nics_per_node": nics,
        },
    )
    spec = ClusterSpec(
        name="made",
        node="dgx-h100",
        nodes=nodes,
        tiers=tuple(
            TierSpec(name=f"tier{i}", gpus=g, oversubscription=o)
            for i, (g, o) in enumerate(tiers)
        ),
    )
    gpu, up, nic = (
        catalog_gpu("h100-sxm5-80gb", SHIPPED),
        link(scale_up, SHIPPED),
        link("ib-ndr", SHIPPED),
    )
    host = link("pcie5-x16", SHIPPED)
    return ClusterTopology(Cluster(spec, its_node, gpu, up, nic, host, catalog=SHIPPED))


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


@st.composite
def topologies(draw: st.DrawFn) -> ClusterTopology:
    gpus_per_node = draw(st.sampled_from([4, 8]))
    nodes = draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 9]))
    nodes_per_domain = draw(st.sampled_from([1, 1, 2, 3]))
    gpus = nodes_per_domain * gpus_per_node
    tiers: list[tuple[int, float]] = []
    for factor in draw(st.lists(st.sampled_from([1, 2, 3]), max_size=2)):
        gpus *= factor + len(tiers)
        tiers.append((gpus, draw(st.sampled_from([1.0, 1.5, 2.0, 7.0]))))
    nics = draw(st.sampled_from([1, 2, 4, 8, 16]))
    kinds = ["nvlink4", "xgmi3", "xgmi2-mi250x", "pcie4-bus", "pcie5-bus-no-p2p"]
    up = draw(st.sampled_from(kinds))
    return make(nodes, gpus_per_node, nodes_per_domain, nics, tuple(tiers), up)


@st.composite
def levels_of(draw: st.DrawFn, gpus: int) -> Levels:
    """One or two nested levels whose block divides the GPUs."""
    levels, inner = [], 1
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        if inner == gpus:
            break
        stride = inner * draw(st.sampled_from(divisors(gpus // inner)[:-1]))
        size = draw(st.sampled_from(divisors(gpus // stride)[1:]))
        levels.append((size, stride))
        inner = stride * size
    return tuple(levels)


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_the_view_of_a_group_is_that_of_the_explicit_graph(data: st.DataObject) -> None:
    topology = data.draw(topologies())
    levels = data.draw(levels_of(topology.gpus))
    view = topology.group(levels)
    assert view.ring_bandwidth == pytest.approx(topology.bottleneck(levels, "ring"))
    assert view.all_to_all_bandwidth == pytest.approx(
        topology.bottleneck(levels, "all-to-all"),
    )


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_pairs_see_the_bandwidth_of_the_explicit_graph(data: st.DataObject) -> None:
    topology = data.draw(topologies())
    ((size, stride),) = data.draw(levels_of(topology.gpus).filter(lambda x: len(x) < 2))
    view = topology.point_to_point(stride, size)
    routed = topology.bottleneck(((size, stride),), "point-to-point")
    assert view.bandwidth == pytest.approx(routed)


@settings(deadline=None, max_examples=examples(200))
@given(st.data())
def test_spans_are_those_of_ranks_counted_one_by_one(data: st.DataObject) -> None:
    topology = data.draw(topologies())
    levels = data.draw(levels_of(topology.gpus))
    view, domain = topology.group(levels), topology.fabric.domain
    groups = list(_groups(topology.gpus, levels))
    homes = [[r // domain for r in group] for group in groups]
    spread = [home for home in homes if len({*home}) > 1]
    assert sorted(r for group in groups for r in group) == list(range(topology.gpus))
    assert view.size == prod(size for size, _ in levels)
    assert view.domains == max(len({*home}) for home in homes)
    assert view.intra == (not spread)
    fewest = min((h.count(d) for h in spread for d in h), default=view.size)
    assert view.ranks_per_domain == fewest
    away = max(view.size - h.count(d) for h in homes for d in h)
    assert view.off_domain_fraction == pytest.approx(away / max(view.size - 1, 1))
    for (gpus, _), units in zip(topology.fabric.tiers, view.tiers, strict=True):
        assert units == max(len({r // gpus for r in group}) for group in groups)


@settings(deadline=None, max_examples=examples(200))
@given(st.data())
def test_the_closed_form_is_the_exact_placement(data: st.DataObject) -> None:
    topology = data.draw(topologies())
    levels = data.draw(levels_of(topology.gpus))
    closed = topology.group(levels)
    if closed.size > 1:
        exact = placement._placed_view(topology.fabric, levels)
        assert closed.ring_bandwidth == pytest.approx(exact.ring_bandwidth)
        assert closed.scale_up_bandwidth == pytest.approx(exact.scale_up_bandwidth)
        assert closed.all_to_all_bandwidth == pytest.approx(exact.all_to_all_bandwidth)
        assert (closed.domains, closed.ranks_per_domain, closed.tiers) == (
            exact.domains,
            exact.ranks_per_domain,
            exact.tiers,
        )


@pytest.mark.parametrize("levels", [((4, 1),), ((25, 20),), ((2, 1), (5, 4))])
def test_125_nodes_with_a_last_unit_in_part_agree_with_the_graph(
    levels: Levels,
) -> None:
    topology = make(125, gpus_per_node=4, nics=2, tiers=((32, 3.0),))
    ring = topology.group(levels).ring_bandwidth
    assert ring == pytest.approx(topology.bottleneck(levels, "ring"))


def test_tensor_ranks_across_nodes_drive_all_nics_of_both_nodes() -> None:
    """TP 16 over two nodes of 8: min(450, 8 * 50) GB/s."""
    view = make(4).group(((16, 1),))
    assert view.ring_bandwidth == 400e9
    assert (view.domains, view.ranks_per_domain) == (2, 8)


def test_one_rank_per_node_has_one_nic_share() -> None:
    """DP of stride 8: 50 GB/s with 8 NICs a node, 12.5 GB/s with 2."""
    assert make(4).group(((4, 8),)).ring_bandwidth == 50e9
    assert make(4, nics=2).group(((4, 8),)).ring_bandwidth == 12.5e9


def test_a_domain_larger_than_a_node_keeps_the_scale_up_rate() -> None:
    topology = ClusterTopology(
        resolve_cluster(cluster("gb200-nvl72-64-racks", SHIPPED), SHIPPED)
    )
    view = topology.group(((8, 1),))
    assert (view.intra, view.ring_bandwidth) == (True, 900e9)
    assert topology.group(((16, 8),)).domains == 3


def test_the_uplinks_of_a_pod_are_shared_by_all_rings_that_cross_it() -> None:
    """Ranks 32 apart, pods of 64 at 7:1: 32 rings share 64 * 50 / 7 GB/s."""
    view = make(16, tiers=((64, 7.0),)).group(((4, 32),))
    assert view.ring_bandwidth == pytest.approx(2 * 50e9 / 7)
    assert view.tiers == (2,)


def test_pairs_across_pods_share_the_uplinks() -> None:
    """Stage r to r + 64 with pods of 64 at 7:1: every rank crosses, 50 / 7 GB/s."""
    topology = make(16, tiers=((64, 7.0),))
    view = topology.point_to_point(64, 2)
    assert view.bandwidth == pytest.approx(50e9 / 7)
    assert view.crosses_domain
    assert topology.point_to_point(16, 4).bandwidth == 50e9
    assert topology.point_to_point(1, 8).bandwidth == 450e9


def test_llama3_pairs_inside_a_pod_do_not_see_its_oversubscription() -> None:
    topology = ClusterTopology(
        resolve_cluster(cluster("llama3-h100-16k", SHIPPED), SHIPPED)
    )
    assert topology.point_to_point(8, 16).bandwidth == 50e9
    assert topology.group(((8, 1),)).ring_bandwidth == 450e9
    assert topology.group(((128, 128),)).ring_bandwidth == 50e9
    assert topology.group(((128, 128),)).tiers == (128, 6)


def test_a_group_of_one_sends_nothing_and_sees_the_scale_up_rate() -> None:
    view = make(3).group(((1, 1),))
    assert (view.ring_bandwidth, view.off_domain_fraction) == (450e9, 0)
    assert make(3).point_to_point(8, 1).bandwidth == 450e9


def test_groups_that_do_not_tile_the_cluster_are_refused() -> None:
    with pytest.raises(ValueError, match="every 16 GPUs, which do not divide the 24"):
        make(3).group(((16, 1),))
    with pytest.raises(ValueError, match="do not divide"):
        make(3).point_to_point(8, 2)


@pytest.mark.parametrize("levels", [((4, 2), (2, 4)), ((0, 1),), ((2, 0),)])
def test_levels_that_do_not_nest_are_refused(levels: Levels) -> None:
    with pytest.raises(ValueError, match="do not nest"):
        make(2).group(levels)


def test_131072_gpus_are_placed_in_milliseconds() -> None:
    """Irregular: tiers of 3072 do not divide 131072. Regular ones need no placing."""
    ragged = Fabric(131072, 8, 450e9, 50e9, ((16, 1), (3072, 7)))
    regular = Fabric(131072, 8, 450e9, 50e9, ((16, 1), (4096, 7)))
    start = time.perf_counter()
    view = group_view(ragged, ((512, 256),))
    placed = time.perf_counter() - start
    group_view(regular, ((512, 256),))
    closed = time.perf_counter() - start - placed
    assert view.tiers == (512, 43)
    assert placed < 1
    assert closed < 2e-3


def test_a_group_in_a_mesh_has_the_links_to_its_own_peers() -> None:
    """MI300X: 64 GB/s to each peer, so 2 GPUs see 64 and 8 see 448 GB/s."""
    topology = make(2, scale_up="xgmi3")
    rates = {n: topology.group(((n, 1),)).ring_bandwidth for n in (2, 4, 8)}
    assert rates == {2: 64e9, 4: 192e9, 8: 448e9}
    assert topology.point_to_point(1, 8).bandwidth == 64e9
    spread = topology.group(((2, 8),))
    assert (spread.scale_up_bandwidth, spread.ring_bandwidth) == (448e9, 50e9)


def test_the_dies_of_a_module_have_a_faster_link() -> None:
    """MI250X: 200 GB/s between the two of a module, 50 GB/s to any other."""
    topology = make(2, scale_up="xgmi2-mi250x")
    within = topology.group(((2, 1),)), topology.group(((2, 1), (2, 8)))
    assert [view.scale_up_bandwidth for view in within] == [200e9, 200e9]
    assert topology.group(((2, 2),)).scale_up_bandwidth == 50e9
    assert topology.group(((4, 1),)).scale_up_bandwidth == 150e9
    assert topology.point_to_point(1, 2).bandwidth == 200e9
    assert topology.point_to_point(1, 4).bandwidth == 50e9


def test_a_mesh_has_an_edge_for_each_pair_of_a_domain() -> None:
    graph = make(2, scale_up="xgmi3").graph()
    assert graph.edges[("gpu", 0), ("gpu", 7)]["capacity"] == 64e9
    assert not graph.has_edge(("gpu", 0), ("gpu", 8))
    assert graph.degree(("gpu", 3)) == 8


def test_a_bus_without_peer_to_peer_stages_every_byte_in_host_memory() -> None:
    """8 GPUs of 31.5 GB/s: host memory takes 126 GB/s in, and gives 126 out."""
    topology = make(1, scale_up="pcie4-bus-no-p2p")
    assert topology.group(((8, 1),)).ring_bandwidth == 31.5e9 / 2
    assert topology.group(((2, 1),)).ring_bandwidth == 31.5e9 / 2
    assert topology.point_to_point(1, 2).bandwidth == 31.5e9
    graph = topology.graph()
    assert graph.edges[("bus", 0), ("host-memory", 0)]["capacity"] == 8 * 31.5e9 / 2


def test_a_bus_with_peer_to_peer_is_as_fast_as_its_slots() -> None:
    topology = make(1, scale_up="pcie4-bus")
    assert topology.group(((8, 1),)).ring_bandwidth == 31.5e9
    assert ("host-memory", 0) not in topology.graph()


def test_a_route_takes_the_fewest_links() -> None:
    """Switch inside a domain, NICs to the next one, host memory without peer access."""
    topology = make(2)
    assert sorted(topology._route(0, 1)) == [
        (("gpu", 0), ("nvswitch", 0)),
        (("nvswitch", 0), ("gpu", 1)),
    ]
    assert len(topology._route(0, 8)) == 4
    staged = make(1, scale_up="pcie4-bus-no-p2p")._route(0, 1)
    assert (("bus", 0), ("host-memory", 0)) in staged
    assert len(staged) == 4


def test_the_graph_has_every_gpu_once_per_way_out() -> None:
    topology = make(3, tiers=((16, 2.0),))
    graph = topology.graph()
    gpus = [v for v in graph if v[0] == "gpu"]
    assert len(gpus) == 24
    assert all(graph.degree(v) == 2 for v in gpus)
    assert graph.edges[("tier0", 1), ("core", 0)]["capacity"] == 8 * 50e9 / 2

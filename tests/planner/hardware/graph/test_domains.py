"""Rates inside the domains of nodes that join a GPU in different ways."""

import pytest

from planner.hardware.calibration import calibration
from planner.hardware.catalog import Cluster as Resolved
from planner.hardware.catalog import cluster, gpu, link, node, resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.domains import domain_calibration
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED


def resolved(name: str) -> Resolved:
    return resolve_cluster(ClusterSpec(name="one", node=name, nodes=1), SHIPPED)


def reached(name: str, ranks: int) -> float:
    """Ring rate of neighbours in a node, as a cost model would price it. [B/s]."""
    its = resolved(name)
    topology = ClusterTopology(its)
    links = domain_calibration(its, calibration(its.gpu.name, SHIPPED))
    view = topology.group(((ranks, 1),))
    share = view.scale_up_bandwidth / topology.fabric.full_bandwidth
    return links.ring_bandwidth * share


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100-80gb", "dgx-b200", "hgx-h800"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_below_a_switch_every_group_reaches_the_measured_ring(
    name: str, ranks: int
) -> None:
    ring = calibration(node(name, SHIPPED).gpu, SHIPPED).scale_up.ring_bandwidth
    assert reached(name, ranks) == ring


def test_mi300x_groups_are_as_slow_as_measured() -> None:
    """Measured: 312.9 GB/s among 8 GPUs, 47.7 GB/s between 2."""
    assert reached("hgx-mi300x", 8) == pytest.approx(312.9e9)
    assert reached("hgx-mi300x", 2) == pytest.approx(47.7e9, rel=0.07)
    assert reached("hgx-mi300x", 4) == pytest.approx(312.9e9 * 3 / 7)


def test_four_a100_pcie_cards_reach_what_was_measured_on_pcie() -> None:
    """25 GB/s over PCIe; 193 GB/s between two bridged cards."""
    assert reached("azure-nc96ads-a100-v4", 4) == 25e9
    assert reached("azure-nc48ads-a100-v4", 2) == pytest.approx(193e9, rel=1e-3)


def test_without_peer_to_peer_half_of_pcie_is_left() -> None:
    assert reached("workstation-rtx-4090-4", 4) == pytest.approx(10e9)
    assert reached("workstation-rtx-4090-4", 2) == pytest.approx(10e9)
    assert reached("server-l40s-8", 8) == 20e9


def test_the_rate_of_a_pair_scales_as_the_rates_of_more() -> None:
    full, half = (calibration(name, SHIPPED).scale_up for name in ("l40s", "rtx-4090"))
    assert full.pair_bandwidth == 20e9
    assert half.pair_bandwidth == pytest.approx(10e9)


def test_an_unmeasured_link_scales_by_the_line_rate() -> None:
    """H100 PCIe without its bridge: 208 GB/s times 63 / 300, close to 0.8 of PCIe."""
    its = resolved("h100-pcie-4")
    links = domain_calibration(its, calibration(its.gpu.name, SHIPPED))
    assert links.ring_bandwidth == pytest.approx(208e9 * 63 / 300)
    assert links.nvls_all_reduce_bandwidth is None


@pytest.mark.parametrize("name", ["dgx-h100-8-nodes", "gb200-nvl72-64-racks"])
def test_a_switched_node_has_the_calibration_of_its_gpu(name: str) -> None:
    its = resolve_cluster(cluster(name, SHIPPED), SHIPPED)
    measured = calibration(its.gpu.name, SHIPPED)
    assert domain_calibration(its, measured) is measured.scale_up


def test_a_hopper_on_pcie_alone_reduces_in_no_switch() -> None:
    its = resolve_cluster(cluster("dgx-h100-4-nodes", SHIPPED), SHIPPED)
    bus = Resolved(
        its.spec,
        its.node,
        its.gpu,
        link("pcie5-bus", SHIPPED),
        its.nic,
        its.host_link,
        catalog=SHIPPED,
    )
    links = domain_calibration(bus, calibration("h100-sxm5-80gb", SHIPPED))
    assert links.nvls_all_reduce_bandwidth is None
    assert links.nvls_min_ranks is None
    assert links.ring_bandwidth == pytest.approx(370e9 * 63 / 450)
    assert gpu("h100-sxm5-80gb", SHIPPED).nvlink == "nvlink4"

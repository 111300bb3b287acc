"""A node that holds its GPUs below their TDP slows products and attention."""

import pytest

from planner.hardware.calibration import calibration
from planner.hardware.catalog import cluster, gpu, node, resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.kernels.power import held, rate_held
from planner.hardware.reading.files import SHIPPED


def test_a_module_loses_by_the_power_of_its_cores() -> None:
    """H100 at 500 of 700 W: (5 / 7) ** 0.6 = 0.817."""
    half = node("dgx-h100", SHIPPED).model_copy(update={"power_limit": 500.0})
    assert rate_held(gpu("h100-sxm5-80gb", SHIPPED), half) == pytest.approx(
        0.817, abs=0.001
    )


def test_a_desktop_board_loses_less() -> None:
    """RTX 3090 at 280 of 350 W: 95 % (Puget Systems)."""
    board = node("dgx-h100", SHIPPED).model_copy(update={"power_limit": 280.0})
    assert rate_held(gpu("rtx-3090", SHIPPED), board) == pytest.approx(0.95, abs=0.001)


@pytest.mark.parametrize("limit", [None, 700.0, 1000.0])
def test_no_limit_below_the_tdp_changes_nothing(limit: float | None) -> None:
    its, chip = calibration("h100-sxm5-80gb", SHIPPED), gpu("h100-sxm5-80gb", SHIPPED)
    free = node("dgx-h100", SHIPPED).model_copy(update={"power_limit": limit})
    assert held(its, rate_held(chip, free)) is its


def test_memory_and_links_keep_their_rates() -> None:
    """Only products and attention slow down, all by one ratio."""
    its, chip, alps = (
        calibration("gh200-96gb", SHIPPED),
        gpu("gh200-96gb", SHIPPED),
        node("alps-gh200", SHIPPED),
    )
    slow, ratio = held(its, rate_held(chip, alps)), (660 / 900) ** 0.6
    assert slow.memory == its.memory
    assert slow.scale_up == its.scale_up
    for section in ("gemm", "grouped_gemm"):
        before, after = getattr(its, section), getattr(slow, section)
        rates = [after[name].efficiency / before[name].efficiency for name in before]
        assert rates == pytest.approx([ratio] * len(before))
    for one, other in zip(slow.attention, its.attention, strict=True):
        assert one.forward == pytest.approx([r * ratio for r in other.forward])
        assert one.backward == pytest.approx([r * ratio for r in other.backward])


def test_a_cluster_sets_the_limit_of_its_nodes() -> None:
    given = {"name": "capped", "node": "dgx-h100", "nodes": 2, "power_limit": "500 W"}
    assert (
        resolve_cluster(ClusterSpec.model_validate(given), SHIPPED).node.power_limit
        == 500
    )
    assert resolve_cluster(cluster("alps", SHIPPED), SHIPPED).node.power_limit == 660

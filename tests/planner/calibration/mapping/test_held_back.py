"""Machines of measured rows are held back by their power, or as they were measured."""

from typing import Any

import pytest
from measured_rows import MakeRow

from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.cost.workload import Workload
from planner.hardware.reading.files import SHIPPED


def of(make_row: MakeRow, gpus: int = 1, **fields: Any) -> Case:
    """Case of a row on some hardware."""
    return case_of(
        make_row(
            hardware={"gpus": gpus, **fields},
            layout={"tp": 1, "dp": gpus, "micro_batch": 1},
            job={"global_batch": 2 * gpus},
        ),
        SHIPPED,
    )


def level(workload: Workload) -> float:
    """Efficiency of half-precision products. [1]."""
    return workload.calibration.gemm["bf16"].efficiency


def test_a_power_cap_is_read_from_the_software_too(make_row: MakeRow) -> None:
    """Half of the nominal power: 0.5 ** 0.6 of the rate."""
    free = case_of(make_row(), SHIPPED).workload
    cap = {"power_limit_w": free.gpu.tdp / 2}
    capped = case_of(make_row(software=cap), SHIPPED).workload
    assert level(capped) / level(free) == pytest.approx(0.5**0.6)


def test_a_power_cap_slows_products_and_attention_once(make_row: MakeRow) -> None:
    """The stack's own clock stays: what a machine holds back is the machine's."""
    free = case_of(make_row(), SHIPPED).workload
    capped = case_of(
        make_row(software={"power_limit_w": free.gpu.tdp / 2}), SHIPPED
    ).workload
    assert capped.framework.profile == free.framework.profile
    for one, other in zip(
        capped.calibration.attention, free.calibration.attention, strict=True
    ):
        ratios = [a / b for a, b in zip(one.backward, other.backward, strict=True)]
        assert ratios == pytest.approx([0.5**0.6] * len(ratios))
    assert capped.calibration.memory == free.calibration.memory


def test_the_rate_of_a_measured_machine_counts_for_more_than_its_power(
    make_row: MakeRow,
) -> None:
    """Products, those of experts and attention all at the rate that was measured."""
    plain = of(make_row, gpu="A100", gpus=8).workload
    own = of(make_row, gpu="A100", gpus=8, held_rate=0.8, power_limit_w=300)
    assert level(own.workload) == pytest.approx(0.8 * level(plain))
    one, other = (w.calibration.attention[0] for w in (own.workload, plain))
    assert one.forward == pytest.approx([0.8 * rate for rate in other.forward])


def test_a_cap_costs_a_board_less_than_a_module(make_row: MakeRow) -> None:
    """RTX 3090 at 280 of 350 W keeps 95 %, A100 at 320 of 400 W 87 %."""
    clocks = []
    for name, watts in (("RTX 3090", 280), ("A100", 320)):
        free, capped = (
            of(make_row, gpu=name, gpus=1, power_limit_w=power)
            for power in (None, watts)
        )
        both = [level(each.workload) for each in (capped, free)]
        clocks.append(both[0] / both[1])
    assert clocks == pytest.approx([0.95, 0.875], abs=0.002)

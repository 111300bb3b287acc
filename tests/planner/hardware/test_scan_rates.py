"""Fits of scans lie near rows that they were made from; a borrowed rate says so."""

import pytest

from planner.hardware.catalog import gpu
from planner.hardware.kernels.scans import scan_rate
from planner.hardware.reading.files import SHIPPED

DELTA = 2 * 64 * 5 * 128 + 6 * 128**2
"""Work of one head of 128 columns on one token, chunks of 64. [FLOP]"""
MAMBA = 2 * 128 * 64 + 4 * 128 * 64 + 2 * 128 * 128 / 16
"""FLOPs of Mamba-2: states of 128, 64 columns, 16 heads a group. [FLOP]"""
ROWS = [
    ("gated-delta", "h100-sxm5-80gb", 1, 8192, 32 * DELTA, 0.649e-3),
    ("gated-delta", "h200-sxm-141gb", 4, 8192, 32 * DELTA, 1.956e-3),
    ("gated-delta", "b200-sxm-180gb", 2, 4096, 16 * DELTA, 0.3014e-3),
    ("gated-delta", "gb300-279gb", 1, 32768, 48 * DELTA, 2.684e-3),
    ("mamba2", "b200-sxm-180gb", 1, 8192, 128 * MAMBA, 0.7147e-3),
]
"""Scan, chip, sequences, tokens of each, work per token [FLOP], time [s]:
github:ai-dynamo/aiconfigurator@095f58a."""


@pytest.mark.parametrize(("scan", "chip", "batch", "length", "work", "time"), ROWS)
def test_a_fit_is_near_the_row(
    scan: str, chip: str, batch: int, length: int, work: float, time: float
) -> None:
    rate = scan_rate(scan, gpu(chip, SHIPPED))
    fitted = rate.launch + rate.step * length + batch * length * work / rate.flops
    assert fitted == pytest.approx(time, rel=0.2)
    assert "not on" not in rate.source


def test_other_chips_borrow_by_bandwidth_or_by_the_other_scan() -> None:
    a100, h100 = gpu("a100-sxm4-80gb", SHIPPED), gpu("h100-sxm5-80gb", SHIPPED)
    b200 = gpu("b200-sxm-180gb", SHIPPED)
    ratio = a100.memory_bandwidth / h100.memory_bandwidth
    own, borrowed = (scan_rate("gated-delta", chip) for chip in (h100, a100))
    assert borrowed.flops == pytest.approx(own.flops * ratio)
    assert "measured on h100-sxm5-80gb, not on a100-sxm4-80gb" in borrowed.source
    kimi = scan_rate("kimi-delta", b200)
    assert kimi.flops == pytest.approx(scan_rate("gated-delta", b200).flops)
    assert "borrowed from gated-delta" in kimi.source
    mamba = [scan_rate("mamba2", chip).flops for chip in (h100, b200)]
    delta = [scan_rate("gated-delta", chip).flops for chip in (h100, b200)]
    assert mamba[0] / mamba[1] == pytest.approx(delta[0] / delta[1])

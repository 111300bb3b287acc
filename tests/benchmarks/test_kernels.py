"""Priced kernels lie near NVIDIA's kernel tables, chip by chip."""

from pathlib import Path
from statistics import median

import numpy as np
import pytest
from each import each

from benchmarks.kernels import __main__ as kernels
from benchmarks.kernels import priced
from benchmarks.kernels.ratios import Ratio, ratios
from planner.cost.kernels import gemm_time
from planner.hardware.calibration import calibrated, calibration
from planner.hardware.catalog import gpu, link
from planner.hardware.kernels.shapes import architectures
from planner.hardware.reading.files import SHIPPED

LARGE, SMALL = (0.9, 1.15), (0.8, 1.25)


def switched() -> list[Ratio]:
    """Collectives on chips that a switch joins."""
    every = ratios("nccl")
    return [
        r
        for r in every
        if link(gpu(r.gpu, SHIPPED).nvlink, SHIPPED).topology == "switch"
    ]


@each("one", lambda: ratios("gemm"))
def test_products_take_the_measured_time(one: Ratio) -> None:
    low, high = LARGE if one.band == "large" else SMALL
    assert low <= one.ratio <= high


@each("one", lambda: [r for r in ratios("experts") if r.band == "few tokens"])
def test_experts_with_few_tokens_take_the_measured_time(one: Ratio) -> None:
    assert SMALL[0] <= one.ratio <= SMALL[1]


@each(
    "one",
    lambda: [
        r
        for r in ratios("experts")
        if r.band == "many tokens" and r.gpu != "a100-sxm4-80gb"
    ],
)
def test_experts_with_many_tokens_take_the_measured_time(one: Ratio) -> None:
    """One engine's kernel is all that the table has of A100, at half the rate."""
    assert LARGE[0] <= one.ratio <= LARGE[1]


@each("one", lambda: [r for r in ratios("nccl") if r.band == "2 ranks, long"])
def test_two_ranks_take_the_measured_time_on_every_chip(one: Ratio) -> None:
    assert SMALL[0] <= one.ratio <= SMALL[1]


@each("one", lambda: [r for r in switched() if "long" in r.band])
def test_collectives_of_two_four_and_eight_ranks_take_the_measured_time(
    one: Ratio,
) -> None:
    assert SMALL[0] <= one.ratio <= SMALL[1]


@each(
    "one", lambda: [r for r in ratios("deepep") if gpu(r.gpu, SHIPPED).arch == "hopper"]
)
def test_exchanges_with_experts_take_the_measured_time_on_hopper(one: Ratio) -> None:
    assert SMALL[0] <= one.ratio <= SMALL[1]


def test_short_collectives_of_few_ranks_are_not_too_cheap() -> None:
    """A curve of eight ranks, read for two at an equal chunk, is 0.65 of the time."""
    rings = [r for r in switched() if r.kernel != "alltoall"]
    two = [r.ratio for r in rings if r.band == "2 ranks, short"]
    assert min(two) > 0.8
    assert median(two) == pytest.approx(1, abs=0.1)


@each(
    ("one", "other", "low", "high"),
    [
        ("gb200-186gb", "b200-sxm-180gb", 1.0, 1.12),
        ("b300-sxm-288gb", "b200-sxm-180gb", 1.09, 1.12),
        ("gb300-279gb", "gb200-186gb", 1.15, 1.27),
    ],
)
def test_chips_of_one_architecture_differ_as_measured(
    one: str, other: str, low: float, high: float
) -> None:
    for kind in ("bf16", "fp8", "nvfp4"):
        ratio = float(kernels._over(kind, one, other))
        assert low <= ratio <= high


def test_fp8_products_of_a_gb200_sustain_the_measured_rate() -> None:
    """2.6 to 2.7 PFLOP/s at 8192 x 8192 x 8192 after warm-up."""
    entry = calibration("gb200-186gb", SHIPPED).gemm["fp8"]
    rate, side = priced.product_rate("gb200-186gb", "fp8", entry), np.array([8192.0])
    (seconds,) = gemm_time(rate, side, side, side)
    assert 2 * 8192**3 / seconds * entry.sustained == pytest.approx(2.62e15, rel=0.03)


@each("name", calibrated(SHIPPED))
def test_every_level_names_its_source_and_its_shape(name: str) -> None:
    for entry in calibration(name, SHIPPED).gemm.values():
        assert "shape of" in entry.source
        if entry.sustained < 1:
            assert f"times {entry.sustained:g}" in entry.source


def test_every_sustained_part_has_a_source() -> None:
    for shapes in architectures().values():
        assert all(shape.held and shape.source for shape in shapes.products.values())


def test_the_page_is_that_of_the_command() -> None:
    shown = Path(kernels.__file__).with_name("README.md").read_text(encoding="utf-8")
    assert shown == kernels.page()

"""Calibration: every file loads and is plausible; what is missing is explained."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from each import each

from planner.hardware import calibration as cal
from planner.hardware import catalog
from planner.hardware.kernels.shapes import with_shapes
from planner.hardware.nccl import nccl
from planner.hardware.reading import files
from planner.hardware.reading.files import SHIPPED


@each("name", SHIPPED.names("gpus"))
def test_every_gpu_is_calibrated_under_its_own_name(name: str) -> None:
    assert cal.calibration(name, SHIPPED).name == name


@each("name", cal.calibrated(SHIPPED))
def test_no_rate_exceeds_the_datasheet(name: str) -> None:
    gpu, own = catalog.gpu(name, SHIPPED), cal.calibration(name, SHIPPED)
    for curve in own.attention:
        peak = gpu.peak_bf16 or gpu.peak("fp16")
        assert max(curve.forward + curve.backward) < peak
    link = catalog.link(gpu.nvlink, SHIPPED).bandwidth
    assert own.scale_up.ring_bandwidth < link
    assert own.scale_up.all_to_all_bandwidth < link


@each("name", cal.calibrated(SHIPPED))
def test_attention_backward_is_slower_per_flop_than_forward(name: str) -> None:
    for curve in cal.calibration(name, SHIPPED).attention:
        rates = zip(curve.forward, curve.backward, strict=True)
        assert all(b < f for f, b in rates)


@each("name", cal.calibrated(SHIPPED))
def test_all_reduce_curves_ascend_in_size_and_end_at_the_plateau(name: str) -> None:
    scale_up = cal.calibration(name, SHIPPED).scale_up
    curve = scale_up.all_reduce_curve
    assert all(a[0] < b[0] for a, b in pairwise(curve))
    plateau = scale_up.nvls_all_reduce_bandwidth or scale_up.ring_bandwidth
    assert not curve or curve[-1][1] == pytest.approx(plateau, rel=0.03)


def test_the_a100_attention_split_adds_up_to_the_measured_total() -> None:
    """Forward F / f plus backward 2.5 F / b takes 3.5 F / 189 TFLOP/s at 16 k."""
    (curve,) = [
        c
        for c in cal.calibration("a100-sxm4-80gb", SHIPPED).attention_curves("fa2")
        if c.head_dim == 128
    ]
    seconds = 1 / curve.forward[-1] + 2.5 / curve.backward[-1]
    assert 3.5 / seconds == pytest.approx(189e12, rel=1e-3)


def test_the_h100_has_three_kernels_and_their_head_sizes() -> None:
    h100 = cal.calibration("h100-sxm5-80gb", SHIPPED)
    for kernel in ("fa2", "fa3", "cudnn9"):
        assert [c.head_dim for c in h100.attention_curves(kernel)] == [64, 128, 256]


def test_gemm_efficiencies_are_the_derived_ones() -> None:
    """Short run, sustained part; a chip without a table has a level of its own."""

    def bf16(name: str) -> float:
        return cal.calibration(name, SHIPPED).gemm_for("bf16").efficiency

    assert bf16("a100-sxm4-80gb") == pytest.approx(0.836, rel=1e-3)
    assert bf16("h100-sxm5-80gb") == pytest.approx(0.79 * 0.9, rel=1e-3)
    assert bf16("gb200-186gb") == pytest.approx(0.689 * 0.87, rel=1e-3)
    assert bf16("gb300-279gb") == pytest.approx(0.689 * 0.87 * 1400 / 1200, rel=1e-3)
    assert bf16("mi300x") == pytest.approx(0.93 * 0.511 * 0.968, rel=1e-3)


def test_amd_chips_of_one_kind_follow_their_power() -> None:
    """MI350X to MI355X as (1000 / 1400)^p, with p of MI300X to MI325X."""
    mi300x, mi325x = (catalog.gpu(name, SHIPPED).tdp for name in ("mi300x", "mi325x"))
    power = np.log(784.9 / 668.4) / np.log(mi325x / mi300x)
    for dtype in ("bf16", "fp8"):
        rates = [
            cal.calibration(name, SHIPPED).gemm_for(dtype).efficiency
            * catalog.gpu(name, SHIPPED).peak_bf16
            for name in ("mi350x", "mi355x")
        ]
        assert rates[0] / rates[1] == pytest.approx((1000 / 1400) ** power, rel=3e-3)


def test_attention_of_mi300x_keeps_what_no_matrix_unit_bounds() -> None:
    """1 / r = 1 / (f a) + 1 / t - 1 / a, f the ratio of matrix rates 601.4 / 1409."""

    def rates(name: str, kernel: str) -> Any:
        curve = cal.calibration(name, SHIPPED).attention_curves(kernel)[1]
        return np.array([curve.forward, curve.backward])

    best, torch = (rates("mi355x", kernel) for kernel in ("aiter", "aotriton"))
    slower = 601.4 / 1409 * best
    assert rates("mi300x", "aiter") == pytest.approx(slower, rel=2e-3)
    expected = 1 / (1 / slower + 1 / torch - 1 / best)
    assert rates("mi300x", "aotriton") == pytest.approx(expected, rel=2e-3)


def test_a_section_left_out_is_that_of_the_base() -> None:
    h800, h100 = (
        cal.calibration(name, SHIPPED) for name in ("h800-sxm5-80gb", "h100-sxm5-80gb")
    )
    assert h800.attention == h100.attention
    assert h800.scale_up.ring_bandwidth == 160e9
    assert "h100" in h800.transferred["attention"]


def test_a_borrowed_section_must_be_explained() -> None:
    given = {"name": "x", "base": "h100-sxm5-80gb", "transferred": {"gemm": "why"}}
    with pytest.raises(files.CatalogError, match=r"transferred: .*'attention'"):
        cal._with_base("x.yaml", given, SHIPPED)


def test_a_kernel_that_a_gpu_lacks_is_answered_with_those_it_has() -> None:
    with pytest.raises(files.UnknownNameError, match="fa3; kernels are cudnn9"):
        cal.calibration("b200-sxm-180gb", SHIPPED).attention_curves("fa3")


def test_a_number_format_without_calibration_is_answered_with_those_there_are() -> None:
    with pytest.raises(files.UnknownNameError, match="it has bf16, fp16"):
        cal.calibration("a100-sxm4-80gb", SHIPPED).gemm_for("fp8")


@pytest.mark.parametrize("name", ["host", "network", "nccl", "tpu"])
def test_an_uncalibrated_name_is_answered_with_the_gpus_that_are(name: str) -> None:
    with pytest.raises(files.UnknownNameError, match="there is one for a10, a100"):
        cal.calibration(name, SHIPPED)


def test_networks_are_keyed_by_the_fabric_of_the_nic() -> None:
    for name in SHIPPED.names("links"):
        if fabric := catalog.link(name, SHIPPED).fabric:
            reached = cal.network(fabric, SHIPPED)
            assert reached.all_to_all_efficiency < reached.efficiency < 1
    with pytest.raises(files.UnknownNameError, match="infiniband, roce, efa"):
        cal.network("token-ring", SHIPPED)


def test_nccl_believes_what_8_gpus_measure() -> None:
    """18 links of 20.6 GB/s are 371 GB/s, the ring measures 370 on an H100."""
    constants = nccl()
    assert constants.base_latency["ring"].ll == 6.6e-6
    assert constants.hop_latency["net"]["ring"].simple == 14e-6
    links = catalog.link("nvlink4", SHIPPED).links
    ring = cal.calibration("h100-sxm5-80gb", SHIPPED).scale_up.ring_bandwidth
    assert links is not None
    assert links * constants.nvlink_per_link["hopper"] == pytest.approx(ring, rel=0.01)


@each("name", cal.calibrated(SHIPPED))
def test_products_of_every_format_that_trains_are_calibrated(name: str) -> None:
    gpu, own = catalog.gpu(name, SHIPPED), cal.calibration(name, SHIPPED)
    trains = {f for f in ("bf16", "fp16") if getattr(gpu, f"peak_{f}") is not None}
    assert own.gemm.keys() & {"bf16", "fp16"} <= trains
    assert own.gemm.keys() & trains
    assert ("fp8" in own.gemm) == (gpu.peak_fp8 is not None)
    assert ("nvfp4" in own.gemm) == (gpu.peak_fp4 is not None)
    assert own.grouped_gemm.keys() == own.gemm.keys() - {"fp8", "mxfp8", "nvfp4"}


@each("name", cal.calibrated(SHIPPED))
def test_every_gpu_has_a_curve_of_its_collectives(name: str) -> None:
    assert len(cal.calibration(name, SHIPPED).scale_up.all_reduce_curve) >= 20


def test_a_scaled_section_is_its_base_times_the_factor() -> None:
    """L4: 57.86 / 281.3 TFLOP/s of the L40S; GeForce: through host memory."""
    l4, l40s = cal.calibration("l4", SHIPPED), cal.calibration("l40s", SHIPPED)
    card = cal.calibration("rtx-4090", SHIPPED)
    assert l4.attention[0].forward[0] == pytest.approx(
        0.2057 * l40s.attention[0].forward[0]
    )
    assert card.scale_up.ring_bandwidth == l40s.scale_up.ring_bandwidth / 2
    assert "281.3" in l4.transferred["attention"]


def test_a_scaled_curve_keeps_its_latencies() -> None:
    """S / B(S) is the time per step; twice the message at twice the rate is equal."""
    before = cal.calibration("l40s", SHIPPED).scale_up
    after = cal.scaled_links(before, 2.0)
    pairs = zip(before.all_reduce_curve, after.all_reduce_curve, strict=True)
    assert all(s / b == pytest.approx(t / c) for (s, b), (t, c) in pairs)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ({"attention": 0}, "scale: attention: .*greater than 0"),
        ({"memory": 2}, "scale: memory: "),
        ({"scale_up": 2}, r"scale: \['scale_up'\] are given, not from the base"),
    ],
)
def test_a_scale_of_nothing_borrowed_is_refused(
    scale: dict[str, float], message: str
) -> None:
    l40s = cal.calibration("l40s", SHIPPED).model_dump()
    given = {"base": "l40s", "scale_up": l40s["scale_up"], "scale": scale}
    why = dict.fromkeys(l40s, "why")
    with pytest.raises(files.CatalogError, match=message):
        cal._with_base("x.yaml", given | {"transferred": why}, SHIPPED)


@pytest.mark.parametrize(
    ("name", "borrowed"),
    [
        ("a100-sxm4-80gb", set()),
        ("b200-sxm-180gb", set()),
        ("h100-sxm5-80gb", {"attention_waves"}),
        ("h800-sxm5-80gb", {"attention_waves", "scale_up"}),
        ("rtx-4090", set(cal.calibration("rtx-4090", SHIPPED).transferred) - {"gemm"}),
    ],
)
def test_what_was_never_measured_on_a_chip_is_borrowed(
    name: str, borrowed: set[str]
) -> None:
    assert cal.calibration(name, SHIPPED).borrowed == borrowed


@each("name", cal.calibrated(SHIPPED))
def test_attention_of_a_chip_that_borrows_it_is_borrowed_again(name: str) -> None:
    own = cal.calibration(name, SHIPPED)
    base = cal.calibration(own.base, SHIPPED) if own.base else own
    if own.attention == base.attention:
        assert ("attention" in own.borrowed) >= ("attention" in base.borrowed)


def test_a_file_that_does_not_say_borrows_all_that_its_base_fills() -> None:
    l40s = cal.calibration("l40s", SHIPPED).model_dump()
    given = {"base": "l40s", "scale_up": l40s["scale_up"]}
    why = dict.fromkeys(l40s, "why")
    whole = cal._with_base("x.yaml", given | {"transferred": why}, SHIPPED)
    assert "gemm" in whole["borrowed"]
    assert "scale_up" not in whole["borrowed"]


def test_borrowing_without_a_reason_is_refused() -> None:
    l40s = cal.calibration("l40s", SHIPPED)
    with pytest.raises(ValueError, match=r"borrowed: \['scale_up_on'\] have no reason"):
        cal.GpuCalibration.model_validate(
            l40s.model_dump() | {"borrowed": ["scale_up_on"]}
        )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"like": "tensix", "short_run": 0.5}, "no shape 'tensix'; shapes are ampere"),
        ({"like": "hopper"}, "give short_run, .* or the sustained efficiency"),
        (
            {"like": "hopper", "short_run": 0.5, "efficiency": 0.5},
            "give short_run, .* or the sustained efficiency",
        ),
        ({"like": "hopper", "short_run": 2}, "gemm: bf16: short_run"),
    ],
)
def test_a_product_names_a_known_shape_and_one_level(
    entry: dict[str, object], message: str
) -> None:
    given = {"gemm": {"bf16": entry | {"source": "here"}}}
    with pytest.raises(files.CatalogError, match=message):
        with_shapes("x.yaml", given)


def test_a_file_may_give_all_constants_of_its_products() -> None:
    """Nothing is filled in where no shape is named: as `planner profile` writes."""
    own = {"efficiency": 0.5, "traffic": 1, "overhead": "3 us", "source": "here"}
    assert with_shapes("x.yaml", {"gemm": {"bf16": own}}) == {"gemm": {"bf16": own}}

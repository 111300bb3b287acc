"""Known constants in, the same constants out: fits, file, and the whole pipeline."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.calibration.profiling.fit import (
    fit_gemm,
    fit_line,
    fit_links,
    fit_stream,
    fit_waves,
)
from planner.calibration.profiling.gpu import catalog_name
from planner.calibration.profiling.profile_file import profile_text
from planner.calibration.profiling.run import FULL, QUICK, measure, shapes
from planner.calibration.profiling.timings import (
    AttentionTiming,
    Collective,
    CollectiveTiming,
    GemmTiming,
    HostTiming,
    StreamTiming,
    Timings,
)
from planner.errors import BadInputError
from planner.hardware import catalog
from planner.hardware.calibration import calibration
from planner.hardware.reading.files import SHIPPED
from planner.hardware.specs import Dtype
from planner.job.calibration_file import read_calibration

H200 = catalog.gpu("h200-sxm-141gb", SHIPPED)
PEAK, HBM, SMS = H200.peak("bf16"), H200.memory_bandwidth, H200.sm_count
FRACTIONS = st.floats(0.2, 0.95)


class Known:
    """A bench whose kernels obey the model with constants that the test knows."""

    formats: tuple[Dtype, ...] = ("bf16", "fp16", "fp8")
    kernels: tuple[str, ...] = ("fa2", "cudnn9")
    efficiency, traffic, overhead = 0.7, 0.6, 8e-6
    rate, w0 = 500e12, (2.0, 1.0)

    def gemm(
        self, dtype: Dtype, rows: int, outputs: int, inputs: int, experts: int = 1
    ) -> float | None:
        if experts > 1 and dtype == "fp16":
            return None
        element = 1 if dtype == "fp8" else 2
        t = GemmTiming(rows, outputs, inputs, 0.0, experts, element)
        work = t.flops / (H200.peak(dtype) * self.efficiency)
        return work + self.traffic * t.moved / HBM + self.overhead

    def attention(
        self, kernel: str, head_dim: int, heads: int, seq_len: int
    ) -> tuple[float, float] | None:
        del kernel
        t = AttentionTiming("", head_dim, heads, seq_len, 0.0, 0.0)
        w = heads * seq_len / 128 / SMS
        forward, backward = (1 + w0 / w for w0 in self.w0)
        return t.flops / self.rate * forward, 2.5 * t.flops / self.rate * 2 * backward

    def stream(self, moved: int) -> float | None:
        return moved / (0.8 * HBM) + 5e-6

    def host(self) -> HostTiming:
        return HostTiming(2.5e-6, 55e9, 54e9)


def products(known: Known) -> list[GemmTiming]:
    return [
        GemmTiming(m, n, k, known.gemm("bf16", m, n, k) or 0.0)
        for m, n, k in shapes(FULL)
    ]


@given(FRACTIONS, st.floats(0, 2), st.floats(0, 5e-5))
def test_a_products_constants_are_recovered(
    efficiency: float, traffic: float, overhead: float
) -> None:
    known = Known()
    known.efficiency, known.traffic, known.overhead = efficiency, traffic, overhead
    line = fit_gemm(products(known), PEAK, HBM)
    assert 1 / line.constants[0] == pytest.approx(efficiency, rel=1e-6)
    assert line.constants[1] == pytest.approx(traffic, abs=1e-6)
    assert line.constants[2] == pytest.approx(overhead, abs=1e-10)
    assert line.error < 1e-6


@given(FRACTIONS, st.floats(0, 1e-4))
def test_an_operators_constants_are_recovered(
    efficiency: float, latency: float
) -> None:
    timings = [
        StreamTiming(moved, moved / (efficiency * HBM) + latency)
        for moved in FULL.streams
    ]
    inverse, overhead = fit_stream(timings, HBM).constants
    assert 1 / inverse == pytest.approx(efficiency, rel=1e-6)
    assert overhead == pytest.approx(latency, abs=1e-10)


def test_noise_of_five_percent_leaves_an_efficiency_within_two() -> None:
    noise = np.random.default_rng(3)
    known = Known()
    timings = [
        GemmTiming(
            m, n, k, (known.gemm("bf16", m, n, k) or 0.0) * noise.normal(1, 0.05)
        )
        for m, n, k in shapes(FULL)
    ]
    line = fit_gemm(timings, PEAK, HBM)
    assert 1 / line.constants[0] == pytest.approx(0.7, rel=0.02)
    assert 0.01 < line.error < 0.06


def test_a_constant_stays_at_its_bound_where_the_data_would_cross_it() -> None:
    """Faster than the datasheet and with negative traffic: 1 / eps = 1, mu = 0."""
    timings = [
        GemmTiming(m, n, k, 0.5 * 2 * m * n * k / PEAK) for m, n, k in shapes(QUICK)
    ]
    assert fit_gemm(timings, PEAK, HBM).constants == (1.0, 0.0, 0.0)


def test_a_bounded_fit_is_the_best_on_a_grid() -> None:
    noise = np.random.default_rng(5)
    terms = noise.uniform(0.1, 1, (20, 2))
    seconds = terms @ np.array([1.0, -0.3]) + 0.5
    line = fit_line(terms, seconds, (0.0, 0.0))

    def loss(x: tuple[float, ...]) -> float:
        return float(np.sum((terms @ np.array(x) / seconds - 1) ** 2))

    grid = [(a, b) for a in np.linspace(0, 3, 61) for b in np.linspace(0, 3, 61)]
    assert loss(line.constants) <= min(map(loss, grid)) + 1e-12


def test_too_few_times_are_refused() -> None:
    with pytest.raises(ValueError, match="2 times for 3 constants"):
        fit_gemm([GemmTiming(1, 1, 1, 1.0)] * 2, PEAK, HBM)


def test_waves_are_recovered_and_absent_where_no_loss_is_seen() -> None:
    known = Known()

    def times(heads: tuple[int, ...]) -> list[AttentionTiming]:
        both = ((h, known.attention("fa2", 128, h, 4096)) for h in heads)
        return [AttentionTiming("fa2", 128, h, 4096, *t) for h, t in both if t]

    assert fit_waves(times(FULL.emptier), SMS) == pytest.approx((2.0, 1.0))
    assert fit_waves(times((1, 2)), SMS) is None
    known.w0 = (0.0, 0.0)
    assert fit_waves(times(FULL.emptier), SMS) is None


def collectives(
    ranks: int, ring: float, reduced: float
) -> tuple[CollectiveTiming, ...]:
    rates: dict[Collective, float] = {
        "all_reduce": reduced,
        "all_gather": ring,
        "reduce_scatter": 1.01 * ring,
        "all_to_all": 0.9 * ring,
    }
    timings = []
    for kind, rate in rates.items():
        passes = 2 if kind == "all_reduce" else 1
        for size in (2.0**20, 2.0**30):
            bytes_ = passes * (ranks - 1) / ranks * size
            timings.append(CollectiveTiming(kind, ranks, size, bytes_ / rate))
    return tuple(timings)


def test_a_ring_of_four_becomes_a_curve_of_eight() -> None:
    """The chunk of 1 MiB in 4 ranks is that of 2 MiB in 8."""
    links = fit_links(collectives(4, 360e9, 365e9))
    assert links.ring == pytest.approx(360e9)
    assert links.switch is None
    assert links.curve[0] == (2.0**21, pytest.approx(365e9))
    assert links.all_to_all == pytest.approx(324e9)


def test_a_switch_that_reduces_is_seen_by_its_rate() -> None:
    links = fit_links(collectives(8, 360e9, 480e9))
    assert links.switch == pytest.approx(480e9)
    assert links.curve[0][0] == 2.0**20


def test_a_collective_that_was_not_measured_is_named() -> None:
    only = [t for t in collectives(4, 1e9, 1e9) if t.collective == "all_reduce"]
    with pytest.raises(ValueError, match="all_gather, all_to_all, reduce_scatter"):
        fit_links(only)


def profiled(folder: Path, timings: Timings, link: str | None = None) -> Path:
    path = folder / "mine.yaml"
    text = profile_text(H200, timings, origin="measured 2026-01-02 here", link=link)
    path.write_text(text)
    return path


@pytest.mark.parametrize("sizes", [FULL, QUICK], ids=["full", "quick"])
def test_a_machine_is_recovered_through_its_file(tmp_path: Path, sizes) -> None:  # noqa: ANN001
    told: list[str] = []
    timings = measure(Known(), sizes, told.append)
    timings = replace(timings, collectives=collectives(8, 360e9, 480e9))
    own = read_calibration(profiled(tmp_path, timings), catalog=SHIPPED)
    its = own.kernels(calibration(H200.name, SHIPPED))
    for dtype in ("bf16", "fp16", "fp8"):
        product = its.gemm_for(dtype)
        assert product.efficiency == pytest.approx(0.7, abs=1e-4)
        assert product.traffic == pytest.approx(0.6, abs=1e-3)
        assert product.overhead == pytest.approx(8e-6, rel=1e-3)
        assert product.source.startswith("measured 2026-01-02 here: fit to ")
    assert its.gemm_for("bf16", grouped=True).efficiency == pytest.approx(0.7, abs=1e-3)
    assert its.memory.efficiency == pytest.approx(0.8, abs=1e-4)
    assert its.memory.op_latency == pytest.approx(5e-6)
    assert (its.attention_waves.forward, its.attention_waves.backward) == (2.0, 1.0)
    assert its.scale_up.nvls_all_reduce_bandwidth == pytest.approx(480e9)
    assert {"gemm", "memory", "scale_up"}.isdisjoint(its.transferred)
    assert "attention by cudnn9" in told
    assert timings.skipped == ("grouped products in fp16",)


def test_rates_of_a_curve_are_those_of_the_full_gpu(tmp_path: Path) -> None:
    own = read_calibration(
        profiled(tmp_path, measure(Known(), FULL, str)), catalog=SHIPPED
    )
    its = own.kernels(calibration(H200.name, SHIPPED))
    (curve,) = [c for c in its.attention_curves("cudnn9") if c.head_dim == 128]
    assert curve.seq_len == FULL.seq_lens
    assert curve.waves == pytest.approx(16 * 32768 / 128 / SMS, abs=1e-3)
    endless = curve.forward[0] * (1 + its.attention_waves.forward / curve.waves)
    assert endless == pytest.approx(500e12, rel=1e-3)
    assert curve.backward[0] < curve.forward[0]


def test_links_of_a_machine_go_where_its_link_is(tmp_path: Path) -> None:
    timings = replace(
        measure(Known(), QUICK, str), collectives=collectives(4, 25e9, 25e9)
    )
    own = read_calibration(
        profiled(tmp_path, timings, link="pcie5-bus"), catalog=SHIPPED
    )
    its = own.kernels(calibration(H200.name, SHIPPED))
    assert its.scale_up_on["pcie5-bus"].ring_bandwidth == pytest.approx(25e9)
    assert its.scale_up == calibration(H200.name, SHIPPED).scale_up


def test_what_has_no_section_is_a_comment(tmp_path: Path) -> None:
    text = profiled(tmp_path, measure(Known(), QUICK, str)).read_text()
    assert "# launch of a small kernel 2.50 us; pinned copies 55.0 GB/s" in text
    assert "# not measured: grouped products in fp16" in text


@pytest.mark.parametrize(
    ("device", "gib", "name"),
    [
        ("NVIDIA H100 80GB HBM3", 79.1, "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", 79.1, "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", 93.1, "h100-nvl-94gb"),
        ("NVIDIA H200", 139.8, "h200-sxm-141gb"),
        ("NVIDIA H200 NVL", 139.8, "h200-nvl-141gb"),
        ("NVIDIA A100-SXM4-40GB", 39.4, "a100-sxm4-40gb"),
        ("NVIDIA A100-SXM4-80GB", 79.3, "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", 79.3, "a100-pcie-80gb"),
        ("NVIDIA B200", 178.4, "b200-sxm-180gb"),
        ("NVIDIA GB200", 184.0, "gb200-186gb"),
        ("Tesla V100-SXM2-32GB", 31.7, "v100-sxm2-32gb"),
        ("Tesla V100-PCIE-16GB", 15.8, "v100-pcie-16gb"),
        ("NVIDIA GeForce RTX 4090", 23.5, "rtx-4090"),
        ("NVIDIA RTX 6000 Ada Generation", 47.4, "rtx-6000-ada"),
        (
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            95.0,
            "rtx-pro-6000-blackwell",
        ),
        ("NVIDIA L40S", 44.4, "l40s"),
        ("NVIDIA GH200 480GB", 94.5, "gh200-96gb"),
        ("AMD Instinct MI300X", 191.7, "mi300x"),
        ("AMD Instinct MI250X", 63.9, "mi250x-gcd"),
    ],
)
def test_a_drivers_name_finds_its_gpu(device: str, gib: float, name: str) -> None:
    assert catalog_name(device, gib * 2**30, catalog=SHIPPED) == name


@pytest.mark.parametrize(
    ("device", "gib"), [("NVIDIA RTX A4000", 15.7), ("NVIDIA H100 80GB HBM3", 60.0)]
)
def test_a_gpu_that_is_not_known_is_refused(device: str, gib: float) -> None:
    with pytest.raises(BadInputError, match="--gpu: this GPU is none that we know"):
        catalog_name(device, gib * 2**30, catalog=SHIPPED)

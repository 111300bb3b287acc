"""Ratios that physics and a family fix for a GPU's datasheet."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import log2
from statistics import median

from planner.hardware.catalog import gpu, link
from planner.hardware.checks.findings import Finding
from planner.hardware.reading.files import Catalog
from planner.hardware.specs import GB, GpuSpec

PEAKS = 0.015
"""Relative difference of two peaks that rounding and clocks explain. [1]"""
MEMORY = 0.03
"""Relative difference of a memory's rate and its bus, by rounding to 0.1 TB/s. [1]"""
MOST_OF_A_CARD = 600.0
"""Power that one 12V-2x6 connector carries (PCIe CEM 5.1). [W]"""
APART = 5.0
"""Factor between a GPU's FLOP per joule and the median of its architecture. [1]"""
FORMATS = (
    ("peak_fp16", "peak_bf16"),
    ("peak_bf16", "peak_tf32"),
    ("peak_fp8", "peak_bf16"),
    ("peak_fp4", "peak_fp8"),
)
"""Peaks of one tensor core, whose ratios are powers of two."""
TWINS = ("peak_tf32", "peak_fp32", "peak_fp8")
"""Peaks that follow from architecture, SMs and 16-bit peak."""


def gpu_findings(catalog: Catalog) -> Iterator[Finding]:
    """GPUs whose numbers contradict each other or their family.

    Yields:
        One finding for each broken rule; the file's `deviates` gives reasons.
    """
    every = [gpu(name, catalog) for name in catalog.names("gpus")]
    for spec in every:
        rules = (_clock, _formats, _memory, partial(_power, catalog))
        broken = [breach for rule in rules for breach in rule(spec)]
        broken += [*_twins(spec, every), *_frugal(spec, every)]
        for field, words in broken:
            reason = spec.deviates.get(field, "")
            yield Finding("gpus", spec.name, field, words, reason)
        for field in set(spec.deviates) - {field for field, _ in broken}:
            words = "deviates gives a reason, and no rule is broken"
            yield Finding("gpus", spec.name, field, words)


def tensor_peak(spec: GpuSpec) -> float:
    """Dense peak of 16-bit products.

    Returns:
        That of bf16, or of fp16 where there is no bf16. [FLOP/s]
    """
    return spec.peak_bf16 or spec.peak_fp16 or 0.0


def _off(ratio: float) -> float:
    """Relative distance of a ratio from the nearest power of two."""
    return float(abs(ratio / 2 ** round(log2(ratio)) - 1))


Broken = Iterator[tuple[str, str]]


def _clock(spec: GpuSpec) -> Broken:
    """Peak = SMs x clock x FLOP of an SM in a clock, a power of two."""
    if spec.boost_clock is None:
        return
    width = tensor_peak(spec) / spec.sm_count / spec.boost_clock
    if _off(width) > PEAKS:
        yield (
            "boost_clock",
            f"{spec.sm_count} SMs at {spec.boost_clock / 1e6:.0f} MHz and "
            f"{tensor_peak(spec) / 1e12:.5g} TFLOP/s give {width:.1f} FLOP an SM and "
            "clock, no power of two",
        )


def _formats(spec: GpuSpec) -> Broken:
    """Rates of narrower formats are powers of two of each other."""
    for a, b in FORMATS:
        over, under = getattr(spec, a), getattr(spec, b)
        if over and under and _off(over / under) > PEAKS:
            yield f"{a}/{b}", f"{over / under:.3g}, no power of two"


def _memory(spec: GpuSpec) -> Broken:
    """Bandwidth = pins x rate of a pin."""
    if spec.memory_bus is None or spec.memory_pin is None:
        return
    rate = spec.memory_bus * spec.memory_pin
    if abs(spec.memory_bandwidth / rate - 1) > MEMORY:
        yield (
            "memory_bandwidth",
            f"{spec.memory_bandwidth / GB:.5g} GB/s, {spec.memory_bus} pins carry "
            f"{rate / GB:.5g} GB/s",
        )


def _power(catalog: Catalog, spec: GpuSpec) -> Broken:
    """A card takes no more than its connector carries."""
    up = link(spec.nvlink, catalog)
    card = up.topology == "bus" or "bridge" in up.name
    if card and spec.tdp > MOST_OF_A_CARD:
        yield "tdp", f"{spec.tdp:.0f} W, a card takes at most {MOST_OF_A_CARD:.0f} W"


def _twins(spec: GpuSpec, every: Sequence[GpuSpec]) -> Broken:
    """One architecture, SM count and 16-bit peak: all other peaks are equal."""
    for field in TWINS:
        own = getattr(spec, field)
        peers = [getattr(other, field) for other in every if _alike(spec, other)]
        usual = median([peer for peer in peers if peer] or [0.0])
        if own and usual and abs(own / usual - 1) > PEAKS:
            yield (
                field,
                f"{own / 1e12:.5g} TFLOP/s, others of {spec.arch} with {spec.sm_count} "
                f"SMs have {usual / 1e12:.5g}",
            )


def _alike(spec: GpuSpec, other: GpuSpec) -> bool:
    same = abs(tensor_peak(spec) / tensor_peak(other) - 1) <= PEAKS
    return same and (spec.arch, spec.sm_count) == (other.arch, other.sm_count)


def _frugal(spec: GpuSpec, every: Sequence[GpuSpec]) -> Broken:
    """FLOP per joule are near those of the architecture."""
    family = [
        tensor_peak(other) / other.tdp for other in every if other.arch == spec.arch
    ]
    ratio = tensor_peak(spec) / spec.tdp / median(family)
    if not 1 / APART <= ratio <= APART:
        yield "tdp", f"{ratio:.2g} times the FLOP per joule of {spec.arch}"

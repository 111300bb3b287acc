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
    for its in every:
        rules = (_clock, _formats, _memory, partial(_power, catalog))
        broken = [found for rule in rules for found in rule(its)]
        broken += [*_twins(its, every), *_frugal(its, every)]
        for field, words in broken:
            reason = its.deviates.get(field, "")
            yield Finding("gpus", its.name, field, words, reason)
        for field in set(its.deviates) - {field for field, _ in broken}:
            words = "deviates gives a reason, and no rule is broken"
            yield Finding("gpus", its.name, field, words)


def tensor_peak(its: GpuSpec) -> float:
    """Dense peak of 16-bit products.

    Returns:
        That of bf16, or of fp16 where there is no bf16. [FLOP/s]
    """
    return its.peak_bf16 or its.peak_fp16 or 0.0


def _off(ratio: float) -> float:
    """Relative distance of a ratio from the nearest power of two."""
    return float(abs(ratio / 2 ** round(log2(ratio)) - 1))


Broken = Iterator[tuple[str, str]]


def _clock(its: GpuSpec) -> Broken:
    """Peak = SMs x clock x FLOP of an SM in a clock, a power of two."""
    if its.boost_clock is None:
        return
    width = tensor_peak(its) / its.sm_count / its.boost_clock
    if _off(width) > PEAKS:
        yield (
            "boost_clock",
            f"{its.sm_count} SMs at {its.boost_clock / 1e6:.0f} MHz and "
            f"{tensor_peak(its) / 1e12:.5g} TFLOP/s give {width:.1f} FLOP an SM and "
            "clock, no power of two",
        )


def _formats(its: GpuSpec) -> Broken:
    """Rates of narrower formats are powers of two of each other."""
    for a, b in FORMATS:
        over, under = getattr(its, a), getattr(its, b)
        if over and under and _off(over / under) > PEAKS:
            yield f"{a}/{b}", f"{over / under:.3g}, no power of two"


def _memory(its: GpuSpec) -> Broken:
    """Bandwidth = pins x rate of a pin."""
    if its.memory_bus is None or its.memory_pin is None:
        return
    rate = its.memory_bus * its.memory_pin
    if abs(its.memory_bandwidth / rate - 1) > MEMORY:
        yield (
            "memory_bandwidth",
            f"{its.memory_bandwidth / GB:.5g} GB/s, {its.memory_bus} pins carry "
            f"{rate / GB:.5g} GB/s",
        )


def _power(catalog: Catalog, its: GpuSpec) -> Broken:
    """A card takes no more than its connector carries."""
    up = link(its.nvlink, catalog)
    card = up.topology == "bus" or "bridge" in up.name
    if card and its.tdp > MOST_OF_A_CARD:
        yield "tdp", f"{its.tdp:.0f} W, a card takes at most {MOST_OF_A_CARD:.0f} W"


def _twins(its: GpuSpec, every: Sequence[GpuSpec]) -> Broken:
    """One architecture, SM count and 16-bit peak: all other peaks are equal."""
    for field in TWINS:
        own = getattr(its, field)
        peers = [getattr(one, field) for one in every if _alike(its, one)]
        usual = median([peer for peer in peers if peer] or [0.0])
        if own and usual and abs(own / usual - 1) > PEAKS:
            yield (
                field,
                f"{own / 1e12:.5g} TFLOP/s, others of {its.arch} with {its.sm_count} "
                f"SMs have {usual / 1e12:.5g}",
            )


def _alike(its: GpuSpec, other: GpuSpec) -> bool:
    same = abs(tensor_peak(its) / tensor_peak(other) - 1) <= PEAKS
    return same and (its.arch, its.sm_count) == (other.arch, other.sm_count)


def _frugal(its: GpuSpec, every: Sequence[GpuSpec]) -> Broken:
    """FLOP per joule are near those of the architecture."""
    family = [tensor_peak(one) / one.tdp for one in every if one.arch == its.arch]
    ratio = tensor_peak(its) / its.tdp / median(family)
    if not 1 / APART <= ratio <= APART:
        yield "tdp", f"{ratio:.2g} times the FLOP per joule of {its.arch}"

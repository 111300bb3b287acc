"""Measured times of chunked scans, which layers without keys run as their core.

Data of `calibration/scans.yaml`: t = FLOPs / rate + tokens * step + launch.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.catalog import gpu
from planner.hardware.measured import Measured, Positive
from planner.hardware.reading.files import SHIPPED, read
from planner.hardware.reading.quantities import FlopPerSecond, Seconds
from planner.hardware.reading.shipped import shipped
from planner.hardware.specs import GpuSpec


class _Chip(BaseModel):
    """Fit of one chip."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: FlopPerSecond
    launch: Seconds
    step: Seconds


class _Scan(Measured):
    """Fits of one scan, and the chip and scan that others borrow from."""

    chips: Mapping[str, _Chip]
    otherwise: str = Field(alias="else")
    like: str | None = None


class _Backward(Measured):
    """Time of the backward over the time of the forward."""

    ratio: Positive


class _File(BaseModel):
    """Scans by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    backward: _Backward
    scans: Mapping[str, _Scan]


class ScanRate(NamedTuple):
    """Forward time of a scan on one chip, and what its backward takes over it."""

    flops: FlopPerSecond
    """Rate of a full chip. [FLOP/s]"""
    step: Seconds
    """Time that a token of a sequence waits for the tokens before it. [s]"""
    launch: Seconds
    """Launches and tails of the kernels. [s]"""
    backward: float
    """Time of the backward over the forward's. [1]"""
    source: str
    """Source of the rate, and the chip that it was borrowed from. [text]"""


def scan_rate(scan: str, chip: GpuSpec) -> ScanRate:
    """Measured time of a scan on a chip, or the nearest measured chip's by ratio."""
    known, backward = _file().scans[scan], _file().backward
    name = chip.name if chip.name in known.chips else known.otherwise
    own = known.chips[name]
    source = f"{scan}: {known.source}; backward {backward.ratio:g} times forward"
    if name != chip.name:
        source += f"; measured on {name}, not on {chip.name}"
    scale = _scale(known, name, chip)
    return ScanRate(own.rate * scale, own.step, own.launch, backward.ratio, source)


def _scale(known: _Scan, name: str, chip: GpuSpec) -> float:
    """Rate of a chip over that of the chip whose rate it borrows. [1]."""
    if name == chip.name:
        return 1.0
    measured = gpu(name, SHIPPED)
    if known.like is None:
        return chip.memory_bandwidth / measured.memory_bandwidth
    pair = (
        scan_rate(known.like, chip_or_like).flops for chip_or_like in (chip, measured)
    )
    return next(pair) / next(pair)


@cache
def _file() -> _File:
    """The file of fits."""
    return read(shipped("hardware") / "calibration" / "scans.yaml", _File)

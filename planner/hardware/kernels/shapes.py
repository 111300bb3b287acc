"""Shapes of products' rates by architecture, and the levels that chips hold.

Data of `calibration/kernels.yaml`. A calibration file names an architecture under
`like` and gives the chip's level: `short_run` of the kernel tables, which the
architecture's `sustained` lowers, or a sustained `efficiency` of its own.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.measured import Fraction, Measured, OfPeak, Positive
from planner.hardware.reading.files import CatalogError, parse, read
from planner.hardware.reading.quantities import Seconds
from planner.hardware.reading.shipped import shipped

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A number from 0 on. [1]"""
_SAME_UNITS = {"fp16": "bf16", "mxfp8": "fp8"}
"""Format to the format that runs on the same units at the same rate."""
_NARROW = frozenset({"fp8", "mxfp8", "nvfp4"})
"""Formats whose grouped products lose what dense products lose."""


class ProductShape(Measured):
    """Losses of small products, and the part of a short run's rate that lasts.

    Attributes:
        tail: Outputs lost to the last wave, in waves of blocks of 128 x 128. [1]
        depth: Inputs from which on blocks of a last wave are split; 0 where the tail
            holds for every shape. [1]
        ramp: Inputs' worth of time to fill and drain a block. [1]
        traffic: Weight of the operand bytes. [1]
        overhead: Per kernel. [s]
        sustained: Rate in weeks of training over the rate of a short run. [1]
        source: Source of the losses. [-]
        held: Source of `sustained`. [-]
    """

    tail: NotNegative
    depth: NotNegative = 0.0
    ramp: NotNegative
    traffic: NotNegative
    overhead: Seconds
    sustained: Fraction
    held: str = Field(min_length=1)


class GroupedShape(Measured):
    """Per-expert products beside dense products.

    Attributes:
        ratio: Rate over the rate of dense products. [1]
        traffic: Weight of the operand bytes; no expert's weights are read twice. [1]
        source: Source of both numbers. [-]
    """

    ratio: Positive
    traffic: NotNegative


class Architecture(BaseModel):
    """Shapes of one architecture.

    Attributes:
        products: Number format to the losses of a dense product. [-]
        grouped: Per-expert products. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    products: Mapping[str, ProductShape]
    grouped: GroupedShape

    def product(self, number_format: str) -> ProductShape:
        """Losses of a dense product."""
        alike = _SAME_UNITS.get(number_format, number_format)
        wider = (alike, "fp8", "bf16") if alike in _NARROW else (alike,)
        return next(self.products[name] for name in wider if name in self.products)


class _Given(BaseModel):
    """One product's entry in a calibration file that names its shape."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    like: str
    source: str = Field(min_length=1)
    short_run: OfPeak | None = None
    efficiency: OfPeak | None = None


class _File(BaseModel):
    """Architecture to shapes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    architectures: Mapping[str, Architecture]


@cache
def architectures() -> Mapping[str, Architecture]:
    """Shapes by architecture."""
    path = shipped("hardware") / "calibration" / "kernels.yaml"
    return read(path, _File).architectures


def with_shapes(path: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """A calibration file with the shapes that its products name filled in.

    Returns:
        The content; grouped products are added where only dense products are
        given and all of them name a shape. [-]

    Raises:
        CatalogError: An entry is wrong or names no known architecture.
    """
    result, gemm = dict(content), content.get("gemm")
    if not isinstance(gemm, Mapping):
        return result
    where = f"{path}: gemm"
    shaped = {
        name: parse(f"{where}: {name}", entry, _Given)
        for name, entry in gemm.items()
        if isinstance(entry, Mapping) and "like" in entry
    }
    filled = {name: _dense(where, name, entry) for name, entry in shaped.items()}
    result["gemm"] = {**gemm, **filled}
    if "grouped_gemm" not in content and shaped and len(shaped) == len(gemm):
        result["grouped_gemm"] = {
            name: _grouped(dense, architectures()[shaped[name].like].grouped)
            for name, dense in filled.items()
            if name not in _NARROW
        }
    return result


def _dense(where: str, name: str, entry: _Given) -> dict[str, Any]:
    """Constants of a dense product in one format."""
    if entry.like not in architectures():
        known = ", ".join(architectures())
        raise CatalogError(
            f"{where}: {name}: like: no shape {entry.like!r}; shapes are {known}"
        )
    if (entry.short_run is None) == (entry.efficiency is None):
        raise CatalogError(
            f"{where}: {name}: give short_run, which the architecture's sustained "
            "lowers, or the sustained efficiency"
        )
    shape = architectures()[entry.like].product(name)
    sustained = 1.0 if entry.short_run is None else shape.sustained
    times = "" if entry.short_run is None else f"; times {sustained:g}: {shape.held}"
    level = entry.short_run if entry.efficiency is None else entry.efficiency
    assert level is not None
    return shape.model_dump(
        include={"tail", "depth", "ramp", "traffic", "overhead"}
    ) | {
        "efficiency": round(level * sustained, 4),
        "sustained": sustained,
        "source": f"{entry.source}{times}; shape of {entry.like}: {shape.source}",
    }


def _grouped(dense: Mapping[str, Any], shape: GroupedShape) -> dict[str, Any]:
    """Constants of a per-expert product beside the dense product's."""
    return {
        **dense,
        "efficiency": round(dense["efficiency"] * shape.ratio, 4),
        "traffic": shape.traffic,
        "tail": 0.0,
        "source": f"dense products times {shape.ratio:g}: {shape.source}",
    }

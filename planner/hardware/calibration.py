"""Measured efficiencies of hardware, one YAML file per GPU, with sources.

A file may name a `base` GPU, whose sections fill those that the file leaves out.
`transferred` says why a filled section is sound. `transferred` also names sections
whose numbers were scaled from a relative. `borrowed` lists the sections whose level
was measured on another chip, not just a secondary constant. Without `borrowed`, all
sections that the base fills are borrowed. Under `scale` a file has a factor for a
section that comes from the base. `attention` multiplies rates; `scale_up` multiplies
messages and bandwidths alike, so latencies stay. Datasheet facts are in `specs`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner.hardware.kernels.shapes import NotNegative, with_shapes
from planner.hardware.measured import Fraction, Measured, OfPeak, Positive
from planner.hardware.networks import NetworkCalibration, network, networks
from planner.hardware.reading.files import (
    Catalog,
    CatalogError,
    UnknownNameError,
    parse,
    remembered,
)
from planner.hardware.reading.numbers import PositiveInt
from planner.hardware.reading.quantities import FlopPerSecond, Seconds
from planner.hardware.scale_up import ScaleUpCalibration, scaled_links

__all__ = [
    "AttentionCurve",
    "AttentionWaves",
    "Fraction",
    "GemmCalibration",
    "GpuCalibration",
    "MemoryCalibration",
    "NetworkCalibration",
    "Positive",
    "ScaleUpCalibration",
    "calibrated",
    "calibration",
    "network",
    "scaled_attention",
    "scaled_links",
]

_FOLDER = "calibration"
_NOT_GPUS = frozenset(
    {"attention", "formats", "host", "kernels", "network", "nccl", "power", "scans"}
)
_OWN = frozenset({"name", "base", "transferred", "borrowed", "scale_up_on"})
"""Fields that a base does not hand down."""


class GemmCalibration(Measured):
    """Time of a matrix product.

    t = 2 (M N + lost) (K + ramp) / (peak * efficiency)
    + traffic * bytes / HBM peak + overhead

    Attributes:
        efficiency: Of the datasheet peak, for large shapes, in long runs. [1]
        traffic: Weight of the operand bytes. [1]
        overhead: Per kernel. [s]
        tail: Outputs lost to the last wave, in waves of blocks of 128 x 128. [1]
        depth: Where it is not 0, the last wave's idle blocks are lost instead, over
            1 + K / depth. [1]
        ramp: Inputs' worth of time to fill and drain a block. [1]
        sustained: `efficiency` over that of a short run. [1]
        source: Source of the constants. [-]
    """

    efficiency: OfPeak
    traffic: NotNegative
    overhead: Seconds
    tail: NotNegative = 0.0
    depth: NotNegative = 0.0
    ramp: NotNegative = 0.0
    sustained: Fraction = 1.0


class AttentionCurve(Measured):
    """Rate of an attention kernel over sequence length.

    FLOPs: 4 d s^2 per head forward, halved when causal; backward 2.5 times that.

    Attributes:
        kernel: A word of `calibration/attention.yaml`; `sdpa` is the fused kernel that
            PyTorch has where no named one runs. [-]
        head_dim: Size d of a head. [1]
        causal: True if the mask is causal. [-]
        waves: Heads * batch * s / 128 / SMs of the measurement, at which
            `attention_waves` is already in the rates; None for rates of endless
            work. [1]
        seq_len: Sequence lengths, ascending, shape (n,). [1]
        forward: Rates, shape (n,). [FLOP/s]
        backward: Rates, shape (n,). [FLOP/s]
        source: Source of the rates. [-]
    """

    kernel: str
    head_dim: PositiveInt
    causal: bool
    waves: Positive | None
    seq_len: tuple[PositiveInt, ...] = Field(min_length=1)
    forward: tuple[FlopPerSecond, ...]
    backward: tuple[FlopPerSecond, ...]

    @model_validator(mode="after")
    def _check_points(self) -> Self:
        """One rate each way per length, lengths ascending."""
        counts = [len(self.seq_len), len(self.forward), len(self.backward)]
        if len({*counts}) > 1 or list(self.seq_len) != sorted({*self.seq_len}):
            raise ValueError(
                f"{self.kernel} head_dim {self.head_dim}: seq_len ascends and each has "
                f"a forward and a backward rate; counts are {counts}",
            )
        return self


class AttentionWaves(Measured):
    """Part of its speed that attention keeps with little work: w / (w + w0).

    w = heads * batch * s / 128 / SMs, in waves of blocks

    Attributes:
        forward: w0 of the forward kernel. [1]
        backward: w0 of the backward kernel. [1]
        source: Source of both numbers. [-]
    """

    forward: Positive
    backward: Positive


class MemoryCalibration(Measured):
    """Time of a memory-bound operator: bytes / (HBM peak * efficiency) + op_latency.

    Attributes:
        efficiency: Of the HBM peak, for triad-like kernels. [1]
        op_latency: Between two kernels of a stream, start and drain. [s]
        source: Source of the constants. [-]
    """

    efficiency: Fraction
    op_latency: Seconds


class GpuCalibration(BaseModel):
    """Measured rates and times of one GPU.

    Attributes:
        name: Name of the GPU. [-]
        base: GPU whose sections fill those left out, if any. [-]
        gemm: Number format to the constants of a dense product. [-]
        grouped_gemm: Number format to the constants of a per-expert product. [-]
        attention: Curves per kernel and head size. [-]
        attention_waves: Loss with little work. [-]
        memory: Memory-bound operators. [-]
        scale_up: Collectives inside a domain joined by the GPU's own link. [-]
        scale_up_on: Link to collectives, where a node joins this GPU by that link. [-]
        transferred: Section to the reason why a relative's numbers stand in. [-]
        borrowed: Sections of `transferred` whose level was never measured on this
            chip; each is a reason for a wider interval. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    base: str | None = None
    gemm: Mapping[str, GemmCalibration]
    grouped_gemm: Mapping[str, GemmCalibration]
    attention: tuple[AttentionCurve, ...]
    attention_waves: AttentionWaves
    memory: MemoryCalibration
    scale_up: ScaleUpCalibration
    scale_up_on: Mapping[str, ScaleUpCalibration] = Field(default_factory=dict)
    transferred: Mapping[str, str] = Field(default_factory=dict)
    borrowed: frozenset[str] = frozenset()

    @model_validator(mode="after")
    def _check_borrowed(self) -> Self:
        """Every borrowed section is explained."""
        if unexplained := sorted(self.borrowed - self.transferred.keys()):
            raise ValueError(f"borrowed: {unexplained} have no reason in transferred")
        return self

    def gemm_for(self, dtype: str, *, grouped: bool = False) -> GemmCalibration:
        """Constants of a matrix product in a number format.

        Raises:
            UnknownNameError: Not calibrated here; lists the formats that are.
        """
        table = self.grouped_gemm if grouped else self.gemm
        if dtype not in table:
            kind = "grouped_gemm" if grouped else "gemm"
            raise UnknownNameError(
                f"{self.name} has no {kind} calibration for {dtype}; "
                f"it has {', '.join(table)}",
            )
        return table[dtype]

    def attention_curves(
        self, kernel: str, *, causal: bool = True
    ) -> tuple[AttentionCurve, ...]:
        """Curves of an attention kernel, one per head size, ascending.

        Args:
            kernel: A word of `calibration/attention.yaml`. [-]
            causal: True for a causal mask. [-]

        Raises:
            UnknownNameError: No curve of that kernel; lists the kernels there are.
        """
        curves = [c for c in self.attention if (c.kernel, c.causal) == (kernel, causal)]
        if not curves:
            has = sorted({c.kernel for c in self.attention if c.causal == causal})
            mask = "causal" if causal else "full"
            raise UnknownNameError(
                f"{self.name} has no {mask} attention curves for {kernel}; "
                f"kernels are {', '.join(has) or 'none'}",
            )
        return tuple(sorted(curves, key=lambda c: c.head_dim))


class _Scale(BaseModel):
    """Factors [1] of sections that are taken from a base."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attention: Positive = 1.0
    scale_up: Positive = 1.0


def calibrated(catalog: Catalog) -> tuple[str, ...]:
    """GPUs that have a calibration file, sorted."""
    return tuple(n for n in catalog.names(_FOLDER) if n not in _NOT_GPUS)


@remembered
def calibration(gpu_name: str, catalog: Catalog) -> GpuCalibration:
    """Calibration of a GPU.

    Returns:
        The calibration, with sections of the base filled in. [-]

    Raises:
        UnknownNameError: No calibration for this GPU; lists the calibrated GPUs.
        CatalogError: A section is neither given nor explained in `transferred`.
    """
    if gpu_name not in calibrated(catalog):
        raise UnknownNameError(
            f"no calibration for {gpu_name!r}; there is one for "
            f"{', '.join(calibrated(catalog))}",
        )
    file = catalog.find(_FOLDER, gpu_name)
    content = file.content()
    if isinstance(content, dict):
        shaped = with_shapes(file.path, content)
        content = _with_base(file.path, shaped, catalog)
    rates = parse(file.path, content, GpuCalibration)
    if rates.name != gpu_name:
        raise CatalogError(f"{file.path}: name: must be {gpu_name}, as the file")
    return rates


def _with_base(path: str, content: dict[str, Any], catalog: Catalog) -> dict[str, Any]:
    """Sections of the file, and of its base where `transferred` explains them."""
    if "base" not in content:
        return content
    try:
        original = calibration(content["base"], catalog)
    except UnknownNameError as error:
        raise CatalogError(f"{path}: base: {error}") from error
    own = {key: value for key, value in content.items() if key != "scale"}
    scale = parse(f"{path}: scale", content.get("scale", {}), _Scale)
    base = _scaled(original, scale).model_dump()
    borrowed = base.keys() - own.keys() - _OWN
    reasons = own.get("transferred") or {}
    if unexplained := sorted(borrowed - reasons.keys()):
        raise CatalogError(
            f"{path}: transferred: sections {unexplained} come from {content['base']}; "
            "say of each why that is sound",
        )
    if unused := sorted(scale.model_fields_set - borrowed):
        raise CatalogError(f"{path}: scale: {unused} are given, not from the base")
    inherited = {section: base[section] for section in borrowed}
    return {"borrowed": sorted(borrowed)} | inherited | own


def _scaled(base: GpuCalibration, scale: _Scale) -> GpuCalibration:
    """A base with its attention rates and its domain's bandwidths multiplied."""
    curves = scaled_attention(base.attention, scale.attention)
    scale_up = scaled_links(base.scale_up, scale.scale_up)
    return base.model_copy(update={"attention": curves, "scale_up": scale_up})


def scaled_attention(
    curves: Iterable[AttentionCurve], factor: float
) -> tuple[AttentionCurve, ...]:
    """Curves of attention with every rate multiplied."""
    return tuple(
        curve.model_copy(
            update={
                "forward": tuple(rate * factor for rate in curve.forward),
                "backward": tuple(rate * factor for rate in curve.backward),
            },
        )
        for curve in curves
    )


def check_file(name: str, catalog: Catalog) -> object:
    """Entry of one file of the folder; only GPUs and networks can be laid over."""
    owners = {
        "attention": "attention's",
        "host": "the host's",
        "nccl": "NCCL's",
        "formats": "the formats'",
        "kernels": "the products'",
        "power": "the power law's",
        "scans": "the scans'",
    }
    if whose := owners.get(name):
        path = catalog.find(_FOLDER, name).path
        raise CatalogError(f"{path}: {whose} constants are not replaced")
    return networks(catalog) if name == "network" else calibration(name, catalog)

"""What hardware achieves: measured efficiencies, one YAML file per GPU, with sources.

A file may name a `base` GPU; each section it leaves out is then the base's, and
`transferred` says why that is sound. `transferred` also names sections whose numbers
were scaled from a relative. Datasheet facts are in `specs`.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from hardware.catalog import CatalogError, UnknownNameError, load, names, parse, read
from hardware.units import Bytes, BytesPerSecond, FlopPerSecond, Seconds

Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
"""A part of something, in (0, 1]. [1]"""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A number above 0. [1]"""

_FOLDER = "calibration"


class _Measured(BaseModel):
    """A set of measured constants and where they are from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(min_length=1)


class GemmCalibration(_Measured):
    """Time of a matrix product, linear in three constants.

    t = 2 M N K / (peak * efficiency) + traffic * bytes / HBM peak + overhead

    Attributes:
        efficiency: Of the datasheet peak, for large shapes. [1]
        traffic: Weight of the operand bytes. [1]
        overhead: Per kernel. [s]
        source: Where the constants are from. [-]
    """

    efficiency: Fraction
    traffic: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    overhead: Seconds


class AttentionCurve(_Measured):
    """Rate of an attention kernel over sequence length.

    FLOPs: 4 d s^2 per head forward, halved when causal; backward 2.5 times that.

    Attributes:
        kernel: `fa2`, `fa3` or `cudnn9`. [-]
        head_dim: Size d of a head. [1]
        causal: Whether the mask is causal. [-]
        waves: Heads * batch * s / 128 / SMs of the measurement, at which
            `attention_waves` is already in the rates; None for rates of endless
            work. [1]
        seq_len: Sequence lengths, ascending, shape (n,). [1]
        forward: Rates, shape (n,). [FLOP/s]
        backward: Rates, shape (n,). [FLOP/s]
        source: Where the rates are from. [-]
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


class AttentionWaves(_Measured):
    """How attention loses speed with little work: w / (w + w0), w waves of blocks.

    w = heads * batch * s / 128 / SMs

    Attributes:
        forward: w0 of the forward kernel. [1]
        backward: w0 of the backward kernel. [1]
        source: Where they are from. [-]
    """

    forward: Positive
    backward: Positive


class MemoryCalibration(_Measured):
    """Time of a memory-bound operator: bytes / (HBM peak * efficiency) + op_latency.

    Attributes:
        efficiency: Of the HBM peak, for triad-like kernels. [1]
        op_latency: Per operator, launch included. [s]
        source: Where the constants are from. [-]
    """

    efficiency: Fraction
    op_latency: Seconds


class ScaleUpCalibration(_Measured):
    """Saturated bus bandwidths inside a scale-up domain.

    Attributes:
        ring_bandwidth: Ring all-gather, reduce-scatter, all-reduce. [B/s]
        nvls_all_reduce_bandwidth: All-reduce in the switch, None without it. [B/s]
        nvls_min_ranks: Fewest ranks for which NCCL reduces in the switch. [1]
        all_to_all_bandwidth: Even all-to-all. [B/s]
        all_reduce_curve: (message, bus bandwidth) of 8 ranks, ascending; empty where
            not measured. [B], [B/s]
        source: Where the numbers are from. [-]
    """

    ring_bandwidth: BytesPerSecond
    nvls_all_reduce_bandwidth: BytesPerSecond | None = None
    nvls_min_ranks: PositiveInt | None = None
    all_to_all_bandwidth: BytesPerSecond
    all_reduce_curve: tuple[tuple[Bytes, BytesPerSecond], ...] = ()

    @model_validator(mode="after")
    def _check_nvls(self) -> Self:
        """The bandwidth in the switch and its fewest ranks come together."""
        if (self.nvls_all_reduce_bandwidth is None) != (self.nvls_min_ranks is None):
            raise ValueError(
                "nvls_all_reduce_bandwidth and nvls_min_ranks are both given or "
                f"neither; given {self.nvls_all_reduce_bandwidth} and "
                f"{self.nvls_min_ranks}",
            )
        return self


class GpuCalibration(BaseModel):
    """What one GPU achieves.

    Attributes:
        name: Name of the GPU. [-]
        base: GPU whose sections fill those left out, if any. [-]
        gemm: Number format to the constants of a dense product. [-]
        grouped_gemm: Number format to those of a per-expert product. [-]
        attention: Curves per kernel and head size. [-]
        attention_waves: Loss with little work. [-]
        memory: Memory-bound operators. [-]
        scale_up: Collectives inside a domain. [-]
        transferred: Section to why a relative's numbers stand in for its own. [-]
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
    transferred: Mapping[str, str] = Field(default_factory=dict)

    def gemm_for(self, dtype: str, *, grouped: bool = False) -> GemmCalibration:
        """Constants of a matrix product in a number format.

        Args:
            dtype: Number format. [-]
            grouped: Per-expert products of a mixture of experts. [-]

        Returns:
            The constants. [-]

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
            kernel: `fa2`, `fa3` or `cudnn9`. [-]
            causal: Whether the mask is causal. [-]

        Returns:
            The curves. [-]

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


class NetworkCalibration(_Measured):
    """Parts of the NIC line rate that traffic between domains reaches.

    Attributes:
        efficiency: Large all-gather and reduce-scatter rings. [1]
        all_to_all_efficiency: Even all-to-all. [1]
        p2p_efficiency: One rank to another. [1]
        source: Where the numbers are from. [-]
    """

    efficiency: Fraction
    all_to_all_efficiency: Fraction
    p2p_efficiency: Fraction


class _NetworkFile(BaseModel):
    """Fabric kind to its calibration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fabrics: Mapping[Literal["infiniband", "roce", "efa"], NetworkCalibration]


def calibrated() -> tuple[str, ...]:
    """GPUs that have a calibration file, sorted.

    Returns:
        Names. [-]
    """
    return tuple(n for n in names(_FOLDER) if n not in {"network", "nccl"})


@cache
def calibration(gpu_name: str) -> GpuCalibration:
    """What a GPU achieves.

    Args:
        gpu_name: Name in the catalog. [-]

    Returns:
        Its calibration, sections of its base filled in. [-]

    Raises:
        UnknownNameError: No calibration for it; lists those there are.
        CatalogError: A section is neither given nor explained in `transferred`.
    """
    if gpu_name not in calibrated():
        raise UnknownNameError(
            f"no calibration for {gpu_name!r}; there is one for "
            f"{', '.join(calibrated())}",
        )
    path = files("hardware") / _FOLDER / f"{gpu_name}.yaml"
    given = load(path)
    whole = _with_base(str(path), given) if isinstance(given, dict) else given
    return parse(str(path), whole, GpuCalibration)


def _with_base(path: str, given: dict[str, Any]) -> dict[str, Any]:
    """The file's sections, and its base's for those that `transferred` explains."""
    if "base" not in given:
        return given
    base = calibration(given["base"]).model_dump()
    borrowed = base.keys() - given.keys() - {"name", "base", "transferred"}
    reasons = given.get("transferred", {})
    if unexplained := sorted(borrowed - reasons.keys()):
        raise CatalogError(
            f"{path}: transferred: sections {unexplained} come from {given['base']}; "
            "say of each why that is sound",
        )
    return {section: base[section] for section in borrowed} | given


@cache
def network(kind: str) -> NetworkCalibration:
    """What traffic between domains reaches on a kind of fabric.

    Args:
        kind: `infiniband`, `roce` or `efa`. [-]

    Returns:
        Its calibration. [-]

    Raises:
        UnknownNameError: No such kind; lists those there are.
    """
    path = files("hardware") / _FOLDER / "network.yaml"
    fabrics = {str(k): v for k, v in read(path, _NetworkFile).fabrics.items()}
    if kind not in fabrics:
        raise UnknownNameError(f"no fabric {kind!r}; fabrics are {', '.join(fabrics)}")
    return fabrics[kind]

"""Times of kernels on one machine, as a benchmark hands them to the fits."""

from dataclasses import dataclass, field
from typing import Literal

from planner.hardware.specs import Dtype

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]


@dataclass(frozen=True)
class GemmTiming:
    """Time of one matrix product, or of one grouped product of several experts.

    Attributes:
        rows: M, over all experts. [1]
        outputs: N. [1]
        inputs: K. [1]
        seconds: Time of one product. [s]
        experts: Weights that the product reads. [1]
        element: Bytes of an operand's number. [B]
    """

    rows: int
    outputs: int
    inputs: int
    seconds: float
    experts: int = 1
    element: int = 2

    @property
    def flops(self) -> float:
        """2 M N K. [FLOP]."""
        return 2.0 * self.rows * self.outputs * self.inputs

    @property
    def moved(self) -> float:
        """Operands at their own size, and a two-byte result. [B]."""
        weights = self.experts * self.outputs * self.inputs
        operands = self.element * (self.rows * self.inputs + weights)
        return float(operands + 2 * self.rows * self.outputs)


@dataclass(frozen=True)
class AttentionTiming:
    """Time of one causal attention, forward and backward.

    Attributes:
        kernel: `fa2`, `cudnn9` or `sdpa`. [-]
        head_dim: Size of a head. [1]
        heads: Heads times sequences. [1]
        seq_len: Length of a sequence. [1]
        forward: Time of the forward. [s]
        backward: Time of the backward alone. [s]
    """

    kernel: str
    head_dim: int
    heads: int
    seq_len: int
    forward: float
    backward: float

    @property
    def flops(self) -> float:
        """2 d s^2 for each head: the causal half of the forward. [FLOP]."""
        return 2.0 * self.heads * self.head_dim * self.seq_len**2


@dataclass(frozen=True)
class StreamTiming:
    """Time of one memory-bound operator.

    Attributes:
        moved: Bytes read and written. [B]
        seconds: Time of one operator. [s]
    """

    moved: float
    seconds: float


@dataclass(frozen=True)
class CollectiveTiming:
    """Time of one collective of all GPUs of a machine.

    Attributes:
        collective: Kind of the collective. [-]
        ranks: GPUs that take part. [1]
        message: The whole tensor; of an all-to-all, what a rank sends. [B]
        seconds: Time of one collective, on the slowest rank. [s]
    """

    collective: Collective
    ranks: int
    message: float
    seconds: float

    @property
    def bus_bandwidth(self) -> float:
        """Bus bandwidth (n-1)/n S / t, twice as much for an all-reduce. [B/s]."""
        passes = 2 if self.collective == "all_reduce" else 1
        part = (self.ranks - 1) / self.ranks
        return passes * part * self.message / self.seconds


@dataclass(frozen=True)
class HostTiming:
    """Time of a launch by the host, and rates of copies over the host's link.

    Attributes:
        launch: Time from one small kernel to the next. [s]
        to_device: Rate of a large pinned copy. [B/s]
        to_host: Rate of a large pinned copy, the other way. [B/s]
    """

    launch: float
    to_device: float
    to_host: float


@dataclass(frozen=True)
class Timings:
    """All that was measured on one machine.

    Attributes:
        host: Launches and copies. [-]
        gemm: Number format to times of products. [-]
        grouped: Number format to times of grouped products. [-]
        attention: Times of attention. [-]
        stream: Times of memory-bound operators. [-]
        collectives: Times of collectives, none on a machine with one GPU. [-]
        skipped: Kernels and collectives that were not measured. [text]
    """

    host: HostTiming
    gemm: dict[Dtype, tuple[GemmTiming, ...]]
    grouped: dict[Dtype, tuple[GemmTiming, ...]] = field(default_factory=dict)
    attention: tuple[AttentionTiming, ...] = ()
    stream: tuple[StreamTiming, ...] = ()
    collectives: tuple[CollectiveTiming, ...] = ()
    skipped: tuple[str, ...] = ()

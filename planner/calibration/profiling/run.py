"""The micro-benchmarks: which kernels of which sizes, on any bench."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from planner.calibration.profiling.timings import (
    AttentionTiming,
    GemmTiming,
    HostTiming,
    StreamTiming,
    Timings,
)
from planner.hardware.specs import Dtype

MODEL_WIDTH = 2048
"""Heads times head size of the attention benchmarks, as FlashAttention's. [1]"""
CONSTANTS = 3
"""Constants of a product's model. [1]"""
MIB = 2**20

ByFormat = dict[Dtype, tuple[GemmTiming, ...]]
"""Number format to times of products."""


class Bench(Protocol):
    """Times one kernel at a time; None where the machine cannot run it."""

    formats: tuple[Dtype, ...]
    """Number formats of the GPU's matrix units."""
    kernels: tuple[str, ...]
    """Attention kernels that run."""

    def gemm(
        self, dtype: Dtype, rows: int, outputs: int, inputs: int, experts: int = 1
    ) -> float | None:
        """Time [s] of a product; with experts > 1, of one grouped launch."""

    def attention(
        self, kernel: str, head_dim: int, heads: int, seq_len: int
    ) -> tuple[float, float] | None:
        """Times [s] of a causal forward and of its backward."""

    def stream(self, moved: int) -> float | None:
        """Time [s] of an operator that reads twice and writes once."""

    def host(self) -> HostTiming:
        """Time of a launch, and rates of copies."""


@dataclass(frozen=True)
class Sizes:
    """Sizes that a profile goes through.

    Attributes:
        rows: Tokens of a micro-batch. [1]
        widths: (hidden, inner) sizes of models. [1]
        tensor: Degrees that divide the weights. [1]
        experts: (experts, rows for each) of grouped products. [1]
        head_dims: Sizes of a head. [1]
        tokens: Tokens of every attention. [1]
        seq_lens: Lengths of sequences, ascending. [1]
        emptier: Heads of the attentions that leave the GPU partly empty. [1]
        streams: Bytes of memory-bound operators. [B]
        messages: Bytes of collectives. [B]
    """

    rows: tuple[int, ...]
    widths: tuple[tuple[int, int], ...]
    tensor: tuple[int, ...]
    experts: tuple[tuple[int, int], ...]
    head_dims: tuple[int, ...]
    tokens: int
    seq_lens: tuple[int, ...]
    emptier: tuple[int, ...]
    streams: tuple[int, ...]
    messages: tuple[int, ...]


FULL = Sizes(
    rows=(2048, 4096, 8192),
    widths=((4096, 14336), (8192, 28672)),
    tensor=(1, 2, 4, 8),
    experts=((8, 256), (8, 1024), (8, 4096), (32, 512)),
    head_dims=(64, 128),
    tokens=32768,
    seq_lens=(512, 1024, 2048, 4096, 8192, 16384, 32768),
    emptier=(2, 4, 8, 16, 32),
    streams=tuple(MIB * 2**i for i in range(1, 11)),
    messages=tuple(2**i for i in range(15, 35)),
)
"""Sizes of a whole profile: minutes on one GPU."""
QUICK = replace(
    FULL,
    rows=(2048, 8192),
    widths=((4096, 14336),),
    tensor=(1, 4, 8),
    experts=((8, 256), (8, 4096), (32, 512)),
    head_dims=(128,),
    tokens=16384,
    seq_lens=(1024, 4096, 16384),
    streams=tuple(MIB * 2**i for i in range(1, 10, 2)),
    messages=tuple(2**i for i in range(15, 31)),
)
"""Sizes of a first look: under a minute."""

Step = Callable[[str], None]
"""Called with the name of the next measurement. [text]"""


def shapes(sizes: Sizes) -> Iterator[tuple[int, int, int]]:
    """Rows, outputs and inputs of the products of dense transformer layers.

    Column- and row-parallel linears of attention and feed-forward block, each
    forward, for its input's gradient and for its weight's.
    """
    seen = set()
    for hidden, inner in sizes.widths:
        for tensor in sizes.tensor:
            for split in (hidden // tensor, inner // tensor):
                for rows in sizes.rows:
                    seen |= {
                        (rows, split, hidden),
                        (rows, hidden, split),
                        (split, hidden, rows),
                    }
    yield from sorted(seen)


def measure(bench: Bench, sizes: Sizes, tell: Step) -> Timings:
    """Run all micro-benchmarks of one GPU."""
    gemm: ByFormat = {}
    grouped: ByFormat = {}
    for dtype in bench.formats:
        tell(f"products in {dtype}")
        gemm[dtype] = tuple(_products(bench, dtype, sizes))
        if dtype != "fp8":
            grouped[dtype] = tuple(_grouped(bench, dtype, sizes))
    attention = tuple(_attentions(bench, sizes, tell))
    tell("memory-bound operators, launches, copies")
    streams = ((moved, bench.stream(moved)) for moved in sizes.streams)
    return Timings(
        host=bench.host(),
        gemm=_identified(gemm),
        grouped=_identified(grouped),
        attention=attention,
        stream=tuple(StreamTiming(m, s) for m, s in streams if s is not None),
        skipped=(
            *(f"products in {dtype}" for dtype in gemm.keys() - _identified(gemm)),
            *(
                f"grouped products in {d}"
                for d in grouped.keys() - _identified(grouped)
            ),
            *(() if attention else ("attention",)),
        ),
    )


def _identified(
    timings: dict[Dtype, tuple[GemmTiming, ...]],
) -> dict[Dtype, tuple[GemmTiming, ...]]:
    """The formats with times enough for three constants."""
    return {dtype: each for dtype, each in timings.items() if len(each) >= 3}


def _products(bench: Bench, dtype: Dtype, sizes: Sizes) -> Iterator[GemmTiming]:
    element = 1 if dtype == "fp8" else 2
    for rows, outputs, inputs in shapes(sizes):
        seconds = bench.gemm(dtype, rows, outputs, inputs)
        if seconds is not None:
            yield GemmTiming(rows, outputs, inputs, seconds, element=element)


def _grouped(bench: Bench, dtype: Dtype, sizes: Sizes) -> Iterator[GemmTiming]:
    """Both linears of experts a quarter as wide as the dense block."""
    for hidden, inner in sizes.widths:
        for experts, each in sizes.experts:
            for outputs, inputs in ((inner // 4, hidden), (hidden, inner // 4)):
                rows = experts * each
                seconds = bench.gemm(dtype, rows, outputs, inputs, experts)
                if seconds is not None:
                    yield GemmTiming(rows, outputs, inputs, seconds, experts)


def _attentions(bench: Bench, sizes: Sizes, tell: Step) -> Iterator[AttentionTiming]:
    """Every kernel at constant work per length, then the first one emptier."""
    for kernel in bench.kernels:
        tell(f"attention by {kernel}")
        for head_dim in sizes.head_dims:
            full = MODEL_WIDTH // head_dim * sizes.tokens
            for seq_len in sizes.seq_lens:
                yield from _attention(bench, kernel, head_dim, full // seq_len, seq_len)
    if bench.kernels and sizes.emptier:
        head_dim, seq_len = sizes.head_dims[-1], 4096
        for heads in sizes.emptier:
            yield from _attention(bench, bench.kernels[0], head_dim, heads, seq_len)


def _attention(
    bench: Bench, kernel: str, head_dim: int, heads: int, seq_len: int
) -> Iterator[AttentionTiming]:
    seconds = bench.attention(kernel, head_dim, heads, seq_len)
    if seconds is not None:
        yield AttentionTiming(kernel, head_dim, heads, seq_len, *seconds)

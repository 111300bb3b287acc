"""Ratios of priced to measured time by GPU, kernel and band of sizes."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from statistics import median
from typing import NamedTuple

from benchmarks.kernels import priced
from benchmarks.kernels.tables import Shaped, table

LARGE_ROWS, FEW_ROWS = 4096, 512
"""Rows of a product from which it is large, and up to which it has few. [1]"""
FEW_TOKENS = 64
"""Tokens an expert up to which a rank has few. [1]"""
LONG = 2**26
"""Bytes of a message from which bandwidth decides. [B]"""
CLOCK = {"gemm", "experts"}
"""Tables whose prices are those of a short run."""


class Ratio(NamedTuple):
    """Median of priced over measured time of some kernels of one GPU."""

    gpu: str
    kernel: str
    """Kind of kernel with its format, operation or head size. [text]"""
    band: str
    """Sizes that count. [text]"""
    ratio: float
    """Above 1 the price is too slow. [1]"""
    kernels: int


def gemm_band(kernel: Shaped) -> tuple[str, str]:
    """Kind and band of a dense product."""
    if kernel.size >= LARGE_ROWS:
        return f"product {kernel.key['type']}", "large"
    few = kernel.size <= FEW_ROWS
    return f"product {kernel.key['type']}", "few rows" if few else "between"


def expert_band(kernel: Shaped) -> tuple[str, str]:
    """Kind and band of an expert feed-forward."""
    tokens = kernel.size * kernel.number("topk") / kernel.number("num_experts")
    band = "few tokens" if tokens <= FEW_TOKENS else "many tokens"
    return f"experts {kernel.key['type']}", band


def attention_band(kernel: Shaped) -> tuple[str, str]:
    """Kind and band of attention."""
    return f"attention d{kernel.key['head_dim']}", f"length {kernel.size}"


def collective_band(kernel: Shaped) -> tuple[str, str]:
    """Kind and band of a collective."""
    long = "long" if kernel.size >= LONG else "short"
    return kernel.key["op_name"], f"{kernel.key['num_gpus']} ranks, {long}"


def exchange_band(kernel: Shaped) -> tuple[str, str]:
    """Kind and band of an exchange with experts."""
    return kernel.key["way"], f"{kernel.key['nodes']} nodes"


TABLES: Mapping[
    str, tuple[Callable[[Shaped], float], Callable[[Shaped], tuple[str, str]]]
] = {
    "gemm": (priced.gemm, gemm_band),
    "experts": (priced.experts, expert_band),
    "attention": (priced.attention, attention_band),
    "nccl": (priced.collective, collective_band),
    "deepep": (priced.exchange, exchange_band),
}
"""Table to its price and its bands."""


@cache
def ratios(name: str) -> tuple[Ratio, ...]:
    """Ratios of one table.

    Args:
        name: Name of the table. [text]

    Returns:
        Medians by GPU, kind of kernel and band.
    """
    price, band = TABLES[name]
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for kernel in table(name):
        kind, where = band(kernel)
        ratio = price(kernel) / kernel.seconds
        found[kernel.key["gpu"], kind, where].append(ratio)
    return tuple(Ratio(*key, median(all_), len(all_)) for key, all_ in found.items())


def by_gpu(name: str) -> Iterator[tuple[str, str, Mapping[str, float]]]:
    """Rows of a table of ratios.

    Args:
        name: Name of the table. [text]

    Yields:
        GPU, kind of kernel, and band to ratio.
    """
    rows: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for one in ratios(name):
        rows[one.gpu, one.kernel][one.band] = one.ratio
    for (gpu, kind), bands in rows.items():
        yield gpu, kind, bands

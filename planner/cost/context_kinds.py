"""Transfers and buffers of every kind of context parallelism, side by side."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.specs.frameworks.switches import Mask
from planner.specs.layouts.context import CP_KINDS, MIXED, cp_family

ByRanks = Callable[[Floats], Floats | float]
"""Number by the ranks that see each other's keys. [1], shape (meshes,)"""


@dataclass(frozen=True)
class Moved:
    """Keys, values or gradients that move in one pass of a layer."""

    gathers: float
    """Bytes over those of one all-gather of keys and values in 16 bits. [1]"""
    core_share: ByRanks | None = None
    """Share of the attention core that runs meanwhile; None: the core waits, but for
    what a stack hides. [1]"""


@dataclass(frozen=True)
class KeyExchange:
    """Exchange of keys among the ranks that see each other's keys."""

    forward: tuple[Moved, ...]
    backward: tuple[Moved, ...]
    buffers: ByRanks
    """Bytes of buffers over those of a rank's own keys and values in 16 bits. [1]"""
    sums: bool = True
    """Results of the chunks are added up, one chunk after the other."""


def _all(_: Floats) -> float:
    """The attention of all chunks. [1]."""
    return 1.0


_RING = KeyExchange(
    forward=(Moved(1, core_share=_all),),
    backward=(Moved(3, core_share=_all),),
    buffers=lambda _: 6.0,
)
"""Keys and values go round; backward again, with their gradients in fp32. Two chunks
of neighbours are kept, and two of gradients.

Source: Liu et al., arXiv:2310.01889.
"""
_ALL_GATHER = KeyExchange(
    forward=(Moved(1),),
    backward=(Moved(2),),
    buffers=lambda ranks: ranks,
    sums=False,
)
"""Keys and values are gathered first; backward again, and gradients are scattered.

Source: Llama 3, arXiv:2407.21783, section 3.3.2.
"""
_GATHERED_RING = KeyExchange(
    forward=(Moved(1, core_share=lambda ranks: 1 / ranks),),
    backward=(
        Moved(1, core_share=lambda ranks: 1 / ranks),
        Moved(2, core_share=lambda ranks: 1 - 1 / ranks),
    ),
    buffers=lambda ranks: ranks + 4,
)
"""Keys and values are gathered beside the attention to a rank's own chunk. Gradients in
fp32 go round beside the others; two chunks of them are kept.

Source: PyTorch 2.13, torch/distributed/tensor/experimental/_context_parallel/
_attention.py: the rotation ``allgather``, gradients always by ``alltoall``.
"""
EXCHANGES: dict[str, KeyExchange] = {
    "ring": _RING,
    "all-gather": _ALL_GATHER,
    "ulysses": _RING,
    MIXED: _RING,
    "gathered-ring": _GATHERED_RING,
}
"""Exchange by family of kinds; of Ulysses alone no rank is left to exchange with."""
_DISTINCT = tuple(dict.fromkeys(EXCHANGES.values()))
_INDEX = np.array([_DISTINCT.index(EXCHANGES[cp_family(kind)]) for kind in CP_KINDS])


def exchanges(meshes: Meshes) -> Iterator[tuple[KeyExchange, Mask]]:
    """Exchanges of some meshes, each with the meshes that have it.

    Yields:
        An exchange, and a mask of shape (meshes,) that holds somewhere.
    """
    index = _INDEX[meshes.cp_kind]
    for at, exchange in enumerate(_DISTINCT):
        rows = index == at
        if rows.any():
            yield exchange, rows

"""Ends and adapters of a block whose weights several layers share."""

from dataclasses import dataclass

from planner.models.layers.parts import Gemm, SavedTensor
from planner.models.layers.streams import Stream

_NORMS = 3
"""Columns of the block's norms in h: two before attention, one before the MLP. [1]"""
_KEPT = 7
"""Columns in h kept around the block: the pair and its norm 2 each, the MLP's input,
its output, and the sum that the layer's own half reads. [1]"""
_MOVED = 13
"""Columns in h moved around the block: the pair is made (4) and normed (4), the MLP's
input is normed (2), the block's output is added (3). [1]"""
_ADDED = 3
"""Columns moved for one column that an adapter adds: read twice, written once. [1]"""
_PROJECTIONS = 3
"""Projections of attention with an adapter each: queries, keys and values. [1]"""


@dataclass(frozen=True)
class SharedBlock(Stream):
    """Ends and adapters of a block that several layers run with the same weights.

    The block is attention and an MLP without residuals. It reads the stream and the
    embedding side by side, 2 h columns; a product of the layer's own takes its output
    to the stream. Each layer adds to the MLP, and on request to queries, keys and
    values, a low-rank product of its own.

    P = h^2 + r (h + 2 f) [+ 3 r (2 h + 2 h)] [+ 3 h norms, where the layer holds the
    block]

    Source: Zamba2, arXiv 2411.15242, section II; transformers 5.23,
    models/zamba2/modeling_zamba2.py, Zamba2HybridLayer.

    Args:
        hidden: Model width h. [1]
        rank: Rank r of an adapter. [1]
        inner: Columns of gate and up together, 2 f. [1]
        attends: Queries, keys and values have adapters too.
        held: The layer holds the block; False where an earlier one does.
    """

    hidden: int
    rank: int
    inner: int
    attends: bool = False
    held: bool = True

    @property
    def traffic(self) -> float:
        """Columns that norms and sums around the block move: 13 h + 3 (2 f [+ 6 h])."""
        added = self.inner + self.attends * _PROJECTIONS * 2 * self.hidden
        return float(_MOVED * self.hidden + _ADDED * added)

    @property
    def replicated_parameters(self) -> int:
        """The way back, adapters, and norms where the layer holds the block."""
        norms = self.held * _NORMS * self.hidden
        return norms + sum(gemm.weights for gemm in self.gemms())

    def gemms(self) -> tuple[Gemm, ...]:
        """Way back (h -> h), and adapters in two products each."""
        h, r = self.hidden, self.rank
        return (
            Gemm("block_out", h, h, "replicated", "ffn"),
            Gemm("adapter_fc1_in", h, r, "replicated", "ffn"),
            Gemm("adapter_fc1_out", r, self.inner, "replicated", "ffn"),
            *self._of_attention(),
        )

    def _of_attention(self) -> tuple[Gemm, ...]:
        """Adapters of queries, keys and values; each is as wide as the pair, 2 h."""
        if not self.attends:
            return ()
        pair, r, three = 2 * self.hidden, self.rank, _PROJECTIONS
        return (
            Gemm("adapter_qkv_in", pair, three * r, "replicated", "attention"),
            Gemm("adapter_qkv_out", r, three * pair, "replicated", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Inputs and outputs of the block's norms, its output, and adapters' columns.

        Returns:
            Tensors, widths per token. [1]
        """
        adapters = self.rank * (1 + self.attends * _PROJECTIONS)
        return (SavedTensor("stream", _KEPT * self.hidden + adapters, "sequence"),)

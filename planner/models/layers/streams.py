"""Blocks between the halves of a layer and its residual stream."""

from abc import abstractmethod
from dataclasses import dataclass

from planner.models.layers.parts import Block, Gemm, SavedTensor

_HALVES = 2
"""Halves of a layer, each with a connection of its own. [1]"""


class Stream(Block):
    """Base of the blocks between the halves of a layer and its residual stream.

    All of a stream is replicated over tensor ranks.
    """

    hidden: int

    @property
    def copies(self) -> int:
        """Copies of the residual stream that a layer reads and writes."""
        return 1

    @property
    def inner_copies(self) -> int:
        """Copies of the stream between the halves of a layer."""
        return self.copies

    @property
    def mixed_flops(self) -> int:
        """Forward FLOPs per token of products without weights.

        Returns:
            FLOPs per token. [FLOP]
        """
        return 0

    @property
    @abstractmethod
    def traffic(self) -> float:
        """Columns that memory-bound operators move forward, per token. [1]."""

    @property
    def sharded_parameters(self) -> int:
        """None."""
        return 0


@dataclass(frozen=True)
class LayerInputs(Stream):
    """Embedding of a layer's own, gated by the stream and added to it.

    P = 2 h p; the norm behind it is one of the layer's, the table is the model's.

    Source: transformers 5.23, models/gemma4/modeling_gemma4.py, Gemma4TextDecoderLayer.

    Args:
        hidden: Model width h. [1]
        width: Columns p of the layer's embedding. [1]
    """

    hidden: int
    width: int

    @property
    def traffic(self) -> float:
        """Gate, embedding and their product: 3 p."""
        return 3.0 * self.width

    @property
    def replicated_parameters(self) -> int:
        """Gate and projection: 2 h p."""
        return 2 * self.hidden * self.width

    def gemms(self) -> tuple[Gemm, ...]:
        """Gate (h -> p) and projection (p -> h)."""
        return (
            Gemm("input_gate", self.hidden, self.width, "replicated", "ffn"),
            Gemm("input_out", self.width, self.hidden, "replicated", "ffn"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """The stream, the gate's output, the layer's embedding and their product.

        Returns:
            Tensors, widths per token. [1]
        """
        return (SavedTensor("stream", self.hidden + 3 * self.width, "sequence"),)


@dataclass(frozen=True)
class HyperConnections(Stream):
    """Several copies of the residual stream, mixed around each half (mHC).

    P = 2 ((2 + n) n (n h + 1) + 3): weights to collapse the copies, to spread the
    half's output and to mix the copies, made from all copies.

    Source: Xie et al. 2025, arXiv 2512.24880; DeepSeek-V4 technical report, section
    2.2; transformers 5.23, models/deepseek_v4/modeling_deepseek_v4.py.

    Args:
        hidden: Model width h. [1]
        count: Copies n of the stream. [1]
    """

    hidden: int
    count: int

    @property
    def copies(self) -> int:
        """Copies of the stream: n."""
        return self.count

    @property
    def _mixes(self) -> int:
        """Weights of one connection for one token: (2 + n) n."""
        return (2 + self.count) * self.count

    @property
    def mixed_flops(self) -> int:
        """Forward FLOPs per token of mixing copies: 2 n^2 h for each half.

        Returns:
            FLOPs per token. [FLOP]
        """
        return _HALVES * 2 * self.count**2 * self.hidden

    @property
    def traffic(self) -> float:
        """Copies read to weigh them, read to mix, and written: 3 n h for each half."""
        return _HALVES * 3.0 * self.count * self.hidden

    @property
    def replicated_parameters(self) -> int:
        """Weights, their offsets, and three scales, for each half."""
        each = self._mixes * (self.count * self.hidden + 1) + 3
        return _HALVES * each

    def gemms(self) -> tuple[Gemm, ...]:
        """Weights of each half's connection (n h -> (2 + n) n)."""
        wide, mixes = self.count * self.hidden, self._mixes
        return (
            Gemm("hyper_attention", wide, mixes, "replicated", "attention"),
            Gemm("hyper_ffn", wide, mixes, "replicated", "ffn"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Each half's collapsed input and its output, which spreads over the copies.

        Left out: copies in fp32, which fused kernels do not write.

        Returns:
            Tensors, widths per token. [1]
        """
        return (SavedTensor("stream", _HALVES * 2 * self.hidden, "sequence"),)


@dataclass(frozen=True)
class AlternatingUpdates(LayerInputs):
    """Copies of the stream: a layer updates one and predicts the others (AltUp).

    P = 2 h p + 2 h r + h n + n^3 + n^2 + h: inputs of the layer's own, a low-rank
    residual branch (Laurel) and its norm, weights of the copies, an output scale.

    Source: Baykal et al. 2023, arXiv 2301.13310; transformers 5.23,
    models/gemma3n/modeling_gemma3n.py.

    Args:
        count: Copies n of the stream. [1]
        rank: Rank r of the residual branch. [1]
    """

    count: int = 1
    rank: int = 1

    @property
    def copies(self) -> int:
        """Copies of the stream: n."""
        return self.count

    @property
    def inner_copies(self) -> int:
        """One: the halves work on the predicted copy."""
        return 1

    @property
    def mixed_flops(self) -> int:
        """Forward FLOPs per token of predicting the copies: 2 n^2 h.

        Returns:
            FLOPs per token. [FLOP]
        """
        return 2 * self.count**2 * self.hidden

    @property
    def traffic(self) -> float:
        """Copies read, written, predicted, corrected: 4 n h, and those of inputs."""
        return super().traffic + 4.0 * self.count * self.hidden

    @property
    def replicated_parameters(self) -> int:
        """Products, each once, and the scale of the output."""
        return sum(gemm.weights for gemm in self.gemms()) + self.hidden

    def gemms(self) -> tuple[Gemm, ...]:
        """Inputs of its own, residual branch, weights of the copies, made twice."""
        h, n = self.hidden, self.count
        return (
            *super().gemms(),
            Gemm("laurel_in", h, self.rank, "replicated", "attention"),
            Gemm("laurel_out", self.rank, h, "replicated", "attention"),
            Gemm("altup_router", h, n, "replicated", "ffn", _HALVES),
            Gemm("altup_predict", n, n**2, "replicated", "ffn"),
            Gemm("altup_correct", n, n, "replicated", "ffn"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Those of the layer's inputs, predicted copies, and the branch's columns.

        Returns:
            Tensors, widths per token. [1]
        """
        inputs = sum(tensor.width for tensor in super().saved())
        predicted = self.count * self.hidden + self.rank
        return (SavedTensor("stream", inputs + predicted, "sequence"),)

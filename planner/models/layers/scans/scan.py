"""Blocks that carry a state along the sequence in place of keys: chunked scans."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from planner.models.layers.attention import AttentionBlock
from planner.models.layers.parts import Gemm, SavedTensor

Ranks = TypeVar("Ranks", float, npt.NDArray[np.float64])
"""A number of ranks, or a column of numbers. [1]"""
Scan = Literal["gated-delta", "kimi-delta", "lightning", "mamba2", "selective"]
"""Scans that kernels are measured for, or borrow a rate. [text]"""


class ScanBlock(AttentionBlock):
    """Base of the blocks whose core is a chunked scan.

    Inside a chunk the core is attention over the chunk's tokens; between chunks a
    state of fixed size carries the past. `heads` counts the groups of heads that tensor
    and context ranks share out.
    """

    scan: ClassVar[Scan]
    window: None = None
    chunk: int
    conv: int

    @property
    @abstractmethod
    def heads(self) -> int:
        """Groups of heads that ranks share out. [1]."""

    @property
    @abstractmethod
    def out_width(self) -> int:
        """Columns of the scan's output. [1]."""

    @property
    @abstractmethod
    def conv_width(self) -> int:
        """Columns that the short convolution mixes along the sequence. [1]."""

    @property
    @abstractmethod
    def state_width(self) -> int:
        """Numbers of the state of one sequence. [1]."""

    def shared_out(self, tp: int, cp: int) -> bool:
        """Tell if tensor and context ranks can share out the heads.

        Args:
            tp: Tensor ranks. [1]
            cp: Context ranks. [1]

        Returns:
            True where every rank gets whole groups of heads.
        """
        return self.heads % (tp * cp) == 0

    def repeated_width(self, ranks: Ranks) -> Ranks:
        """Columns of the inputs that ranks hold once more than there are.

        Args:
            ranks: Tensor ranks times context ranks. [1]

        Returns:
            Columns, over all ranks. [1]
        """
        return 0 * ranks

    @property
    def backward_width(self) -> float:
        """Columns that the scan's backward holds beside what the layer keeps.

        Gradients of the convolved columns and of the output, the states between chunks
        and their gradients.

        Returns:
            Numbers per token. [1]
        """
        states = 2 * self.state_width / self.chunk
        return self.conv_width + self.out_width + states

    @property
    @abstractmethod
    def fused(self) -> tuple[tuple[str, str, int], ...]:
        """Parts of the fused products: part, product and columns. [text, text, 1]."""

    @property
    def inner_width(self) -> int:
        """Columns that the input projections make."""
        return sum(g.outputs for g in self.gemms() if g.split == "column")

    def attended(self, seq_len: float, *, causal: bool) -> float:
        """Mean tokens of a chunk that a token is charged for.

        full: the chunk; causal: half of the chunk

        Left out: a last chunk that is not full.

        Args:
            seq_len: Tokens in a sequence; the scan's work per token ignores it. [1]
            causal: Count only scores that the mask leaves.

        Returns:
            Tokens per token. [1]
        """
        assert seq_len > 0
        return self.chunk / 2 if causal else float(self.chunk)


@dataclass(frozen=True)
class GatedDelta(ScanBlock):
    """Gated delta rule (GDN) behind a short convolution, and a gated norm.

    P = h (2 K + 2 V + 2 n_v) + w (2 K + V) + 2 n_v + d_v + V h with K = n_k d_k and
    V = n_v d_v: queries, keys, values and the output gate, decay and step of each head,
    convolution, decay and time biases, norm of a head, output.

    Source: Yang et al. 2024, arXiv 2412.06464, section 3.3; transformers 5.23,
    models/qwen3_next/modeling_qwen3_next.py.

    Args:
        hidden: Model width h. [1]
        key_heads: Heads n_k of queries and of keys. [1]
        value_heads: Heads n_v of values, a multiple of n_k. [1]
        key_dim: Width d_k of a head of queries or keys. [1]
        value_dim: Width d_v of a head of values. [1]
        conv: Taps w of the convolution along the sequence. [1]
        chunk: Tokens c of a chunk. [1]
    """

    scan: ClassVar[Scan] = "gated-delta"

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int
    chunk: int = 64

    @property
    def heads(self) -> int:
        """Heads of keys, each with heads of values of its own: n_k."""
        return self.key_heads

    @property
    def out_width(self) -> int:
        """Columns of all values: V = n_v d_v."""
        return self.value_heads * self.value_dim

    @property
    def conv_width(self) -> int:
        """Columns of queries, keys and values: 2 K + V."""
        return 2 * self.key_heads * self.key_dim + self.out_width

    @property
    def state_width(self) -> int:
        """Numbers of the state of one sequence: n_v d_k d_v."""
        return self.out_width * self.key_dim

    @property
    def fused(self) -> tuple[tuple[str, str, int], ...]:
        """Convolved columns and the output gate; step and decay of each head.

        Returns:
            Part, product and columns. [text, text, 1]
        """
        return (
            ("convolved", "scan_in", self.conv_width),
            ("gate_z", "scan_in", self.out_width),
            ("step", "scan_gates", self.value_heads),
            ("decay", "scan_gates", self.value_heads),
        )

    @property
    def sharded_parameters(self) -> int:
        """Projections, convolution, and decay and time bias of each head."""
        matrices = sum(gemm.weights for gemm in self.gemms())
        return matrices + self.conv * self.conv_width + 2 * self.value_heads

    @property
    def replicated_parameters(self) -> int:
        """Gated norm of a head: d_v."""
        return self.value_dim

    def gemms(self) -> tuple[Gemm, ...]:
        """Inputs (h -> 2 K + 2 V), gates (h -> 2 n_v), output (V -> h)."""
        h, out = self.hidden, self.out_width
        wide = self.conv_width + out
        return (
            Gemm("scan_in", h, wide, "column", "attention"),
            Gemm("scan_gates", h, 2 * self.value_heads, "column", "attention"),
            Gemm("attention_out", out, h, "row", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Projected inputs, convolved Q, K, V, gates, the chunks' systems, outputs.

        2 K + 2 V before the convolution, 2 K + V behind it; step and decay in fp32; the
        solved c x c system of every chunk and head; the scan's output and the gated
        norm's.

        Left out: states between chunks, which the backward makes again.
        Source: github:fla-org/flash-linear-attention, ops/gated_delta_rule/chunk.py,
        ChunkGatedDeltaRuleFunction.

        Returns:
            Tensors, widths per token. [1]
        """
        heads, out = self.value_heads, self.out_width
        return (
            SavedTensor("scan_input", self.conv_width + out, "tensor"),
            SavedTensor("qkv", self.conv_width, "tensor"),
            SavedTensor("scan_gates", 2 * heads, "tensor", "fp32"),
            SavedTensor("scan_system", heads * self.chunk, "tensor"),
            SavedTensor("scan_output", out, "tensor"),
            SavedTensor("attention_output", out, "tensor"),
        )

    def solved_flops(self, context: float) -> float:
        """Forward FLOPs per token of the chunks' systems: 2 n_v c (d_k + d_v).

        Kernels multiply values and decayed keys by the inverse.

        Args:
            context: Tokens of a chunk, c. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        return 2 * self.value_heads * context * (self.key_dim + self.value_dim)

    def core_flops(self, context: float) -> float:
        """Forward FLOPs per token of the scan: n_v (2 c (3 d_k + 2 d_v) + 6 d_k d_v).

        K K^T, Q K^T, the system's two products and the scores' one inside a chunk;
        three products with the state.

        Left out: the system's inverse, gates, the convolution.

        Args:
            context: Tokens of a chunk, c. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        keys, values = self.key_dim, self.value_dim
        inside = 2 * context * (2 * keys + values)
        states = 6 * keys * values
        return self.value_heads * (inside + states) + self.solved_flops(context)

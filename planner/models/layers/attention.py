"""Attention blocks: multi-head and grouped-query, and multi-head latent (MLA)."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from planner.models.layers.parts import Block, Gemm, SavedTensor


class AttentionBlock(Block):
    """Base of every attention block: keys attended, FLOPs of the core."""

    hidden: int
    window: int | None
    chunked: bool = False
    splits_sequence: ClassVar[bool] = True
    """True where context ranks can share out a sequence. [1]"""

    @abstractmethod
    def core_flops(self, context: float) -> float:
        """Forward FLOPs per token of the scores and their product with the values.

        Args:
            context: Keys that a token attends to, from `attended`. [1]

        Returns:
            FLOPs per token, a multiply-add is 2. [FLOP]
        """

    def index_flops(self, seq_len: float, *, causal: bool) -> float:
        """Forward FLOPs per token of choosing keys; 0 where all are attended to.

        Args:
            seq_len: Tokens in a sequence. [1]
            causal: Count only keys that the mask leaves.

        Returns:
            FLOPs per token. [FLOP]
        """
        assert seq_len > 0 or causal
        return 0

    def kernel_flops(self, seq_len: float) -> float:
        """Forward FLOPs per token that the kernel of the core computes.

        Args:
            seq_len: Tokens in a sequence. [1]

        Returns:
            FLOPs per token; of the scores that the mask leaves. [FLOP]
        """
        return self.core_flops(self.attended(seq_len, causal=True))

    def attended(self, seq_len: float, *, causal: bool) -> float:
        """Mean keys that a token is charged for.

        full:   s, every score counts, masked or not, also under a window
        causal: s / 2, or w * (1 - w / (2 s)) with a window w < s,
                or w / 2 with chunks of w < s

        Left out: the half key by which (s + 1) / 2 is exact; packed documents; a
        last chunk that is not full.

        Args:
            seq_len: Tokens in a sequence, s. [1]
            causal: Count only scores that the mask leaves.

        Returns:
            Keys per query. [1]
        """
        if not causal:
            return float(seq_len)
        if self.window is None or self.window >= seq_len:
            return seq_len / 2
        if self.chunked:
            return self.window / 2
        return self.window * (1 - self.window / (2 * seq_len))


@dataclass(frozen=True)
class Attention(AttentionBlock):
    """Multi-head (heads = kv_heads) or grouped-query attention.

    P = h (a + m g) d + a d h, biases (a + m g) d and h, QK-norm 2 d or, over all
    heads, (a + g) d, sinks a, an output gate h a d, with m = 2 matrices for keys and
    values. A head of width 0 is a layer without attention: it holds and computes
    nothing.

    Args:
        hidden: Model width h. [1]
        heads: Query heads a. [1]
        kv_heads: Key-value heads g. [1]
        head_dim: Width d of a head; a * d need not equal h. [1]
        qkv_bias: Biases on the query, key and value projections.
        out_bias: Bias on the output projection.
        qk_norm: One RMSNorm over d for the queries, one for the keys.
        window: Causal sliding window w; None attends to all. [1]
        wide_qk_norm: One norm weight per column of all heads instead of per head.
        sinks: One learned logit per head that takes part in the softmax.
        chunked: The window is a block of the sequence, not the last w keys.
        logit_cap: Bound of the scores, by tanh; None for no bound. [1]
        output_gate: Columns beside the queries whose sigmoid scales the output.
        key_matrices: Matrices m for keys and values: 2, 1 where values are the keys'
            columns, 0 where an earlier layer made both. [1]
        input_width: Columns that the projections read in place of h; None for h. [1]
        held: The layer holds the weights; False where an earlier one does.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    window: int | None = None
    wide_qk_norm: bool = False
    sinks: bool = False
    chunked: bool = False
    logit_cap: float | None = None
    output_gate: bool = False
    key_matrices: int = 2
    input_width: int | None = None
    held: bool = True

    @property
    def read_width(self) -> int:
        """Columns that the projections read: h, or a width of their own.

        Returns:
            Columns. [1]
        """
        return self.input_width or self.hidden

    @property
    def gate_width(self) -> int:
        """Columns of the output gate: a d, or 0.

        Returns:
            Columns. [1]
        """
        return self.output_gate * self.out_width

    @property
    def qkv_width(self) -> int:
        """Columns of the fused projection: (a + m g) d.

        Returns:
            Columns. [1]
        """
        return (self.heads + self.key_matrices * self.kv_heads) * self.head_dim

    @property
    def out_width(self) -> int:
        """Columns of the attention output: a d.

        Returns:
            Columns. [1]
        """
        return self.heads * self.head_dim

    @property
    def sharded_parameters(self) -> int:
        """Projections and what goes with heads: h (a + m g) d + a d h [+ (a + m g) d].

        A norm over all heads adds (a + g) d, sinks add a, an output gate h a d. Weights
        of an earlier layer add none.

        Returns:
            Parameters. [1]
        """
        if not self.held:
            return 0
        read = self.read_width * (self.qkv_width + self.gate_width)
        matrices = read + self.out_width * self.hidden
        norm = self.wide_qk_norm * (self.heads + self.kv_heads) * self.head_dim
        biased = self.qkv_width + self.gate_width
        vectors = self.qkv_bias * biased + self.sinks * self.heads
        return matrices + norm + vectors

    @property
    def replicated_parameters(self) -> int:
        """Output bias and QK-norm: [h] + [2 d], or d where keys are not its own.

        Returns:
            Parameters. [1]
        """
        if not self.held:
            return 0
        normed = 2 if self.key_matrices else 1
        return self.out_bias * self.hidden + self.qk_norm * normed * self.head_dim

    def gemms(self) -> tuple[Gemm, ...]:
        """Fused QKV (h -> (a + m g) d, with a gate + a d), and output (a d -> h).

        Returns:
            GEMMs; none where the layer has no attention. [1]
        """
        if self.head_dim == 0:
            return ()
        wide = self.qkv_width + self.gate_width
        made = Gemm("qkv", self.read_width, wide, "column", "attention")
        out = Gemm("attention_out", self.out_width, self.hidden, "row", "attention")
        return replace(made, held=self.held), replace(out, held=self.held)

    def saved(self) -> tuple[SavedTensor, ...]:
        """Q, K and V after rotation; the output; the softmax's log-sum-exp.

        An output gate keeps its columns and the output before they scale it. Keys and
        values of an earlier layer are kept there.

        Left out: the softmax matrix, which flash attention does not keep; the
        inputs of a QK-norm.

        Returns:
            Tensors, widths per token; none where the layer has no attention. [1]
        """
        if self.head_dim == 0:
            return ()
        kept = self.heads + 2 * self.kv_heads * (self.key_matrices > 0)
        tensors = (
            SavedTensor("qkv", kept * self.head_dim, "tensor"),
            SavedTensor("attention_output", self.out_width, "tensor"),
            SavedTensor("logsumexp", self.heads, "tensor", "fp32"),
        )
        if not self.output_gate:
            return tensors
        return (*tensors, SavedTensor("output_gate", 2 * self.gate_width, "tensor"))

    def core_flops(self, context: float) -> float:
        """Forward FLOPs per token of QK^T and PV: 4 a d s_att.

        Args:
            context: Keys that a token attends to, s_att. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        return 4 * self.out_width * context


@dataclass(frozen=True)
class LatentAttention(AttentionBlock):
    """Multi-head latent attention of DeepSeek-V2, as trained (decompressed).

    P = r_q (h + a (d_n + d_r)) + r_q   (or h a (d_n + d_r) without r_q)
      + h (r_kv + d_r) + r_kv a (d_n + d_v) + r_kv + a d_v h

    Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.

    Args:
        hidden: Model width h. [1]
        heads: Heads a. [1]
        q_rank: Rank r_q of the query latent; None projects queries directly. [1]
        kv_rank: Rank r_kv of the key-value latent. [1]
        nope_dim: Width d_n of a head's unrotated part. [1]
        rope_dim: Width d_r of a head's rotated part; its key is shared. [1]
        value_dim: Width d_v of a head's value. [1]
        window: Causal sliding window w; None attends to all. [1]
    """

    hidden: int
    heads: int
    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    window: int | None = None

    @property
    def query_width(self) -> int:
        """Columns of all queries: a (d_n + d_r).

        Returns:
            Columns. [1]
        """
        return self.heads * (self.nope_dim + self.rope_dim)

    @property
    def out_width(self) -> int:
        """Columns of the attention output: a d_v.

        Returns:
            Columns. [1]
        """
        return self.heads * self.value_dim

    @property
    def sharded_parameters(self) -> int:
        """Up-projections and output: (r_q | h) a (d_n + d_r) + r_kv a (d_n + d_v) + ...

        Returns:
            Parameters. [1]
        """
        return sum(g.weights for g in self.gemms() if g.split != "replicated")

    @property
    def replicated_parameters(self) -> int:
        """Down-projections and their norms: [h r_q + r_q] + h (r_kv + d_r) + r_kv.

        Returns:
            Parameters. [1]
        """
        down = sum(g.weights for g in self.gemms() if g.split == "replicated")
        return down + (self.q_rank or 0) + self.kv_rank

    def gemms(self) -> tuple[Gemm, ...]:
        """q_a, q_b (or q alone), kv_a, kv_b and the output projection.

        Returns:
            GEMMs. [1]
        """
        up = self.heads * (self.nope_dim + self.value_dim)
        down = self.kv_rank + self.rope_dim
        return (
            *self._query_gemms(),
            Gemm("kv_a", self.hidden, down, "replicated", "attention"),
            Gemm("kv_b", self.kv_rank, up, "column", "attention"),
            Gemm("attention_out", self.out_width, self.hidden, "row", "attention"),
        )

    def _query_gemms(self) -> tuple[Gemm, ...]:
        if self.q_rank is None:
            return (Gemm("q", self.hidden, self.query_width, "column", "attention"),)
        return (
            Gemm("q_a", self.hidden, self.q_rank, "replicated", "attention"),
            Gemm("q_b", self.q_rank, self.query_width, "column", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Latents, decompressed Q, K, V, the output, and the log-sum-exp.

        latents r_q + r_kv + d_r; QKV a (2 (d_n + d_r) + d_v); output a d_v

        Returns:
            Tensors, widths per token. [1]
        """
        latents = (self.q_rank or 0) + self.kv_rank + self.rope_dim
        qkv = 2 * self.query_width + self.out_width
        return (
            SavedTensor("latents", latents, "sequence"),
            SavedTensor("qkv", qkv, "tensor"),
            SavedTensor("attention_output", self.out_width, "tensor"),
            SavedTensor("logsumexp", self.heads, "tensor", "fp32"),
        )

    def core_flops(self, context: float) -> float:
        """Forward FLOPs per token of the core: 2 a (d_n + d_r + d_v) s_att.

        Args:
            context: Keys that a token attends to, s_att. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        return 2 * (self.query_width + self.out_width) * context

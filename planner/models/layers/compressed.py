"""Attention over a window and over compressed keys (DeepSeek-V4's CSA and HCA)."""

from dataclasses import dataclass
from typing import ClassVar

from planner.models.layers.attention import AttentionBlock
from planner.models.layers.parts import Gemm, SavedTensor


@dataclass(frozen=True)
class CompressedAttention(AttentionBlock):
    """Attention to one key that all heads share: the last w, and one of each m tokens.

    P = r_q (h + a d) + r_q + h d + d + a d r_o + g r_o h + a, and of a compressor
    2 h v + m v + d with v = 2 d where chosen keys overlap (CSA), else d (HCA); of an
    indexer 4 h d_i + 2 m d_i + d_i + r_q a_i d_i + h a_i. Keys serve as values. No
    framework has context ranks compress keys over their borders.

    Source: DeepSeek-V4 technical report, sections 2.2 and 2.3; transformers 5.23,
    models/deepseek_v4/modeling_deepseek_v4.py.

    Args:
        hidden: Model width h. [1]
        heads: Query heads a. [1]
        head_dim: Width d of a head, and of the shared key. [1]
        q_rank: Rank r_q of the query latent. [1]
        out_groups: Groups g of heads whose outputs are projected apart. [1]
        out_rank: Columns r_o of each group's projection. [1]
        window: Last keys w that a query attends to. [1]
        rate: Tokens m of a compressed key; 0 for a window alone. [1]
        index_heads: Heads a_i of the index; 0 where all compressed keys count. [1]
        index_dim: Width d_i of an index head. [1]
        top_k: Compressed keys k that a query attends to. [1]
    """

    splits_sequence: ClassVar[bool] = False

    hidden: int
    heads: int
    head_dim: int
    q_rank: int
    out_groups: int
    out_rank: int
    window: int
    rate: int = 0
    index_heads: int = 0
    index_dim: int = 0
    top_k: int = 0

    @property
    def out_width(self) -> int:
        """Columns of the attention output: a d."""
        return self.heads * self.head_dim

    @property
    def query_width(self) -> int:
        """Columns of all queries: a d."""
        return self.heads * self.head_dim

    @property
    def fused(self) -> tuple[tuple[str, str, int], ...]:
        """Columns of a compressor and their weights, of the core and of the index.

        Returns:
            Part, product and columns. [text, text, 1]
        """
        core, index = (self._overlap * n for n in (self.head_dim, self.index_dim))
        pairs = (("compressor", core), ("index_k", index if self.index_heads else 0))
        return tuple(
            (f"{product}_{part}", product, columns)
            for product, columns in pairs
            for part in ("columns", "weights")
            if columns and self.rate
        )

    @property
    def _overlap(self) -> int:
        """Series of columns of a compressor: 2 where chosen keys overlap."""
        return 2 if self.index_heads else 1

    @property
    def sharded_parameters(self) -> int:
        """Queries from their latent, output, sinks: r_q a d + a d r_o + g r_o h + a."""
        split = sum(g.weights for g in self.gemms() if g.split != "replicated")
        return split + self.heads

    @property
    def replicated_parameters(self) -> int:
        """Query latent, shared key, compressor, indexer, with norms and positions."""
        products = sum(g.weights for g in self.gemms() if g.split == "replicated")
        vectors = self.q_rank + self.head_dim
        for width in (self.head_dim, self.index_dim) if self.rate else ():
            vectors += width + self.rate * self._overlap * width
        return products + vectors

    def gemms(self) -> tuple[Gemm, ...]:
        """Queries by a latent, shared key, compressor, index, output by groups."""
        h, wide = self.hidden, self.out_width
        ranks = self.out_groups * self.out_rank
        return (
            Gemm("q_a", h, self.q_rank, "replicated", "attention"),
            Gemm("q_b", self.q_rank, wide, "column", "attention"),
            Gemm("kv_a", h, self.head_dim, "replicated", "attention"),
            *self._compressor_gemms(),
            Gemm("out_a", wide // self.out_groups, ranks, "column", "attention"),
            Gemm("attention_out", ranks, h, "row", "attention"),
        )

    def _compressor_gemms(self) -> tuple[Gemm, ...]:
        if not self.rate:
            return ()
        h, each = self.hidden, 2 * self._overlap
        keys = Gemm("compressor", h, each * self.head_dim, "replicated", "attention")
        if not self.index_heads:
            return (keys,)
        wide = self.index_heads * self.index_dim
        return (
            keys,
            Gemm("index_k", h, each * self.index_dim, "replicated", "attention"),
            Gemm("index_q", self.q_rank, wide, "replicated", "attention"),
            Gemm("index_weights", h, self.index_heads, "replicated", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Latents and shared keys, queries, output and its groups, index, choice.

        A compressor keeps its columns and their weights.

        Left out: compressed keys, a share 1 / m of the others.

        Returns:
            Tensors, widths per token; a chosen key is a 32-bit number. [1]
        """
        pairs = 2 * self._overlap * self.head_dim if self.rate else 0
        index = (self.index_heads + 2 * self._overlap) * self.index_dim
        tensors = (
            SavedTensor("latents", self.q_rank + self.head_dim + pairs, "sequence"),
            SavedTensor("qkv", self.out_width, "tensor"),
            SavedTensor("attention_output", self.out_width, "tensor"),
            SavedTensor("logsumexp", self.heads, "tensor", "fp32"),
            SavedTensor("out_groups", self.out_groups * self.out_rank, "tensor"),
        )
        if not self.index_heads:
            return tensors
        return (
            *tensors,
            SavedTensor("index", index + self.index_heads, "sequence"),
            SavedTensor("index_choice", self.top_k, "sequence", "fp32"),
        )

    def attended(self, seq_len: float, *, causal: bool) -> float:
        """Mean keys that a token is charged for, of the window and compressed.

        full: s + s / m; causal: those of the window, w (1 - w / (2 s)), and s / (2 m)
        compressed ones or, with n = s / m and k < n chosen, k (1 - k / (2 n))

        Args:
            seq_len: Tokens in a sequence, s. [1]
            causal: Count only scores that the mask and the choice leave.

        Returns:
            Keys per query. [1]
        """
        entries = seq_len / self.rate if self.rate else 0.0
        if not causal:
            return seq_len + entries
        chosen = min(self.top_k, entries) if self.index_heads else entries
        compressed = chosen * (1 - chosen / (2 * entries)) if entries else 0.0
        return super().attended(seq_len, causal=True) + compressed

    def core_flops(self, context: float) -> float:
        """Forward FLOPs per token of scores and their product with values: 4 a d s_att.

        Args:
            context: Keys that a token attends to, s_att. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        return 4 * self.out_width * context

    def index_flops(self, seq_len: float, *, causal: bool) -> float:
        """Forward FLOPs per token of the index scores: 2 a_i d_i s / m.

        Args:
            seq_len: Tokens in a sequence, s. [1]
            causal: Count only compressed keys before the query, s / (2 m).

        Returns:
            FLOPs per token. [FLOP]
        """
        if not self.index_heads:
            return 0.0
        keys = seq_len / self.rate / (2 if causal else 1)
        return 2 * self.index_heads * self.index_dim * keys

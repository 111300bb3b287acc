"""Latent attention over the keys that an indexer chooses (DSA)."""

from dataclasses import dataclass

from planner.models.layers.attention import LatentAttention
from planner.models.layers.parts import Gemm, SavedTensor


@dataclass(frozen=True)
class SparseLatentAttention(LatentAttention):
    """Latent attention whose queries attend to their top-k keys by an index score.

    P = P_MLA + r_q a_i d_i + h d_i + h a_i + 2 d_i: index queries from the query
    latent, one index key and its LayerNorm, a weight for each index head.

    Source: DeepSeek-V3.2, arXiv 2512.02556, section 2.1; transformers 5.23,
    models/deepseek_v32/modeling_deepseek_v32.py.

    Args:
        index_heads: Heads a_i of the index. [1]
        index_dim: Width d_i of an index head. [1]
        top_k: Keys k that a query attends to. [1]
    """

    index_heads: int = 1
    index_dim: int = 1
    top_k: int = 1

    @property
    def replicated_parameters(self) -> int:
        """Down-projections, the indexer, and the norms of both."""
        return super().replicated_parameters + 2 * self.index_dim

    def gemms(self) -> tuple[Gemm, ...]:
        """GEMMs of latent attention, then index queries, index key, head weights."""
        h, wide = self.hidden, self.index_heads * self.index_dim
        return (
            *super().gemms(),
            Gemm("index_q", self.q_rank or h, wide, "replicated", "attention"),
            Gemm("index_k", h, self.index_dim, "replicated", "attention"),
            Gemm("index_weights", h, self.index_heads, "replicated", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Tensors of latent attention, index queries, key and weights, chosen keys.

        Left out: index scores, which a backward of the indexer makes again.

        Returns:
            Tensors, widths per token; a chosen key is a 32-bit number. [1]
        """
        index = (self.index_heads + 1) * self.index_dim + self.index_heads
        return (
            *super().saved(),
            SavedTensor("index", index, "sequence"),
            SavedTensor("index_choice", self.top_k, "sequence", "fp32"),
        )

    def attended(self, seq_len: float, *, causal: bool) -> float:
        """Mean keys that a token is charged for.

        full: s; causal: s / 2, or k (1 - k / (2 s)) with k < s, as under a window

        Args:
            seq_len: Tokens in a sequence, s. [1]
            causal: Count only scores of chosen keys.

        Returns:
            Keys per query. [1]
        """
        if not causal:
            return float(seq_len)
        chosen = min(self.top_k, seq_len)
        return chosen * (1 - chosen / (2 * seq_len))

    def index_flops(self, seq_len: float, *, causal: bool) -> float:
        """Forward FLOPs per token of the index scores: 2 a_i (d_i + 1) s.

        Args:
            seq_len: Tokens in a sequence, s. [1]
            causal: Count only keys that the causal mask leaves, s / 2.

        Returns:
            FLOPs per token. [FLOP]
        """
        keys = seq_len / 2 if causal else seq_len
        return 2 * self.index_heads * (self.index_dim + 1) * keys

    def kernel_flops(self, seq_len: float) -> float:
        """Forward FLOPs per token of the cheaper kernel for the core.

        Dense heads under a mask over s / 2 keys, or chosen keys as latents, which all
        heads share: 2 a (2 r_kv + d_r) each.

        Source: github:deepseek-ai/FlashMLA, sparse prefill over 576 and 512 columns.

        Args:
            seq_len: Tokens in a sequence, s. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        wide = 2 * self.heads * (2 * self.kv_rank + self.rope_dim)
        chosen = wide * self.attended(seq_len, causal=True)
        return min(self.core_flops(seq_len / 2), chosen)

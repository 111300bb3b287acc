"""Kimi's delta attention (KDA): the gated delta rule with a decay for each column."""

from dataclasses import dataclass
from typing import ClassVar

from planner.models.layers.parts import Gemm, SavedTensor
from planner.models.layers.scans.scan import GatedDelta, Scan


@dataclass(frozen=True)
class KimiDelta(GatedDelta):
    """Gated delta rule whose decay and output gate are low-rank projections.

    P = h (3 D + n) + 2 d (h + D) + 3 w D + D + n + d + D h with D = n d: queries, keys
    and values, step of each head, decay and output gate of each column, convolution,
    decay and time biases, norm of a head, output. Heads of keys and of values are one
    number n of one width d.

    Source: Kimi Linear, arXiv 2510.26692, section 3; transformers 5.23,
    models/kimi_linear/modeling_kimi_linear.py.
    """

    scan: ClassVar[Scan] = "kimi-delta"

    @property
    def fused(self) -> tuple[tuple[str, str, int], ...]:
        """Queries, keys and values; step; low-rank halves of decay and gate.

        Returns:
            Part, product and columns. [text, text, 1]
        """
        wide, narrow = self.out_width, self.value_dim
        return (
            ("kda_q", "scan_in", wide),
            ("kda_k", "scan_in", wide),
            ("kda_v", "scan_in", wide),
            ("step", "scan_gates", self.value_heads),
            ("decay_low", "scan_low", narrow),
            ("gate_low", "scan_low", narrow),
            ("decay_high", "scan_high", wide),
            ("gate_high", "scan_high", wide),
        )

    @property
    def sharded_parameters(self) -> int:
        """Projections of heads, convolution, time biases and decays."""
        split = sum(g.weights for g in self.gemms() if g.split != "replicated")
        vectors = self.conv * self.conv_width + self.out_width + self.value_heads
        return split + vectors

    @property
    def replicated_parameters(self) -> int:
        """Low-rank inputs of decay and gate, and the norm of a head: 2 h d + d."""
        return 2 * self.hidden * self.value_dim + self.value_dim

    def gemms(self) -> tuple[Gemm, ...]:
        """Inputs (h -> 3 D), step (h -> n), low-rank gates (h -> 2 d -> 2 D), out."""
        h, out, narrow = self.hidden, self.out_width, self.value_dim
        return (
            Gemm("scan_in", h, self.conv_width, "column", "attention"),
            Gemm("scan_gates", h, self.value_heads, "column", "attention"),
            Gemm("scan_low", h, 2 * narrow, "replicated", "attention"),
            Gemm("scan_high", narrow, 2 * out, "column", "attention"),
            Gemm("attention_out", out, h, "row", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Tensors of the gated delta rule; a decay of every column, two systems.

        Source: github:fla-org/flash-linear-attention, ops/kda/chunk.py.

        Returns:
            Tensors, widths per token. [1]
        """
        heads, out = self.value_heads, self.out_width
        return (
            SavedTensor("latents", 2 * self.value_dim, "sequence"),
            SavedTensor("scan_input", self.conv_width + out, "tensor"),
            SavedTensor("qkv", self.conv_width, "tensor"),
            SavedTensor("scan_gates", out + heads, "tensor", "fp32"),
            SavedTensor("scan_system", 2 * heads * self.chunk, "tensor"),
            SavedTensor("scan_output", out, "tensor"),
            SavedTensor("attention_output", out, "tensor"),
        )

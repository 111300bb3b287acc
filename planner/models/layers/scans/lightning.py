"""Lightning attention: linear attention whose decay is fixed for each head."""

from dataclasses import dataclass
from typing import ClassVar

from planner.models.layers.parts import Gemm, SavedTensor
from planner.models.layers.scans.scan import Scan, ScanBlock


@dataclass(frozen=True)
class Lightning(ScanBlock):
    """Linear attention in blocks, with a gated norm over all heads.

    P = h 3 D + h D + D h + D with D = n d: queries, keys and values behind an
    activation in place of a convolution, output gate, output, norm.

    Source: MiniMax-01, arXiv 2501.08313, section 2.2; transformers 5.23,
    models/minimax/modeling_minimax.py.

    Args:
        hidden: Model width h. [1]
        state_heads: Heads n. [1]
        head_dim: Width d of a head of queries, keys or values. [1]
        chunk: Tokens c of a block. [1]
        conv: Taps of the convolution: one, there is none. [1]
    """

    scan: ClassVar[Scan] = "lightning"

    hidden: int
    state_heads: int
    head_dim: int
    chunk: int = 256
    conv: int = 1

    @property
    def heads(self) -> int:
        """Heads: n."""
        return self.state_heads

    @property
    def out_width(self) -> int:
        """Columns of the scan's output: D = n d."""
        return self.state_heads * self.head_dim

    @property
    def conv_width(self) -> int:
        """Columns of queries, keys and values, which the activation passes: 3 D."""
        return 3 * self.out_width

    @property
    def state_width(self) -> int:
        """Numbers of the state of one sequence: n d^2."""
        return self.out_width * self.head_dim

    @property
    def fused(self) -> tuple[tuple[str, str, int], ...]:
        """Queries, keys and values; the output gate.

        Returns:
            Part, product and columns. [text, text, 1]
        """
        return (
            ("convolved", "scan_in", self.conv_width),
            ("gate_z", "scan_in", self.out_width),
        )

    @property
    def sharded_parameters(self) -> int:
        """Projections and the norm over all heads."""
        return sum(gemm.weights for gemm in self.gemms()) + self.out_width

    @property
    def replicated_parameters(self) -> int:
        """None."""
        return 0

    def gemms(self) -> tuple[Gemm, ...]:
        """Inputs and gate (h -> 4 D) and output (D -> h)."""
        h, out = self.hidden, self.out_width
        return (
            Gemm("scan_in", h, self.conv_width + out, "column", "attention"),
            Gemm("attention_out", out, h, "row", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Projected inputs and gate, activated Q, K, V, outputs of scan and norm.

        Left out: states between blocks, which the backward makes again.
        Source: github:OpenNLPLab/lightning-attention, ops/triton/lightning_attn2.py,
        LightningAttention2: it saves queries, keys and values.

        Returns:
            Tensors, widths per token. [1]
        """
        out = self.out_width
        return (
            SavedTensor("scan_input", self.conv_width + out, "tensor"),
            SavedTensor("qkv", self.conv_width, "tensor"),
            SavedTensor("scan_output", out, "tensor"),
            SavedTensor("attention_output", out, "tensor"),
        )

    def core_flops(self, context: float) -> float:
        """Forward FLOPs per token of the scan: n (4 c d + 4 d^2).

        Queries by keys and scores by values inside a block; the state is written and
        read once.

        Left out: decays.

        Args:
            context: Tokens of a block, c. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        return 4 * self.out_width * context + 4 * self.state_width

"""Selective scan of Mamba: a state of its own for every column."""

from dataclasses import dataclass
from typing import ClassVar

from planner.models.layers.parts import Gemm, SavedTensor
from planner.models.layers.scans.scan import Scan, ScanBlock


@dataclass(frozen=True)
class SelectiveScan(ScanBlock):
    """Selective state space (Mamba) behind a short convolution, with normed steps.

    P = 2 h D + D (r + 2 N) + r D + D h + (w + 1) D + D N + 2 D + r + 2 N: inputs and
    gate, low-rank step with keys B and queries C, step of each column, output;
    convolution with its bias, decays, step bias and skip, norms of step, B and C. The
    core is no product: each column's state decays and grows token by token.

    Source: Gu and Dao 2023, arXiv 2312.00752, section 3; Jamba, arXiv 2403.19887;
    transformers 5.23, models/jamba/modeling_jamba.py.

    Args:
        hidden: Model width h. [1]
        columns: Columns D. [1]
        state: Width N of the state of one column. [1]
        rank: Rank r of the time step. [1]
        conv: Taps w of the convolution along the sequence. [1]
        conv_bias: Bias on the convolution.
        bias: Biases on the input and output projections.
        chunk: Tokens after which the kernel keeps its state. [1]
    """

    scan: ClassVar[Scan] = "selective"

    hidden: int
    columns: int
    state: int
    rank: int
    conv: int
    conv_bias: bool = True
    bias: bool = False
    chunk: int = 2048

    @property
    def heads(self) -> int:
        """Columns, each a head of its own: D."""
        return self.columns

    @property
    def out_width(self) -> int:
        """Columns of the scan's output: D."""
        return self.columns

    @property
    def conv_width(self) -> int:
        """Columns that the convolution mixes: D."""
        return self.columns

    @property
    def state_width(self) -> int:
        """Numbers of the state of one sequence: D N."""
        return self.columns * self.state

    @property
    def _low(self) -> int:
        """Columns of the low-rank step, keys and queries: r + 2 N."""
        return self.rank + 2 * self.state

    @property
    def fused(self) -> tuple[tuple[str, str, int], ...]:
        """Columns with their gate; low-rank step with keys and queries; step.

        Returns:
            Part, product and columns. [text, text, 1]
        """
        return (
            ("scan_in", "scan_in", 2 * self.columns),
            ("scan_low", "scan_low", self._low),
            ("scan_high", "scan_high", self.columns),
        )

    @property
    def sharded_parameters(self) -> int:
        """Projections, convolution, decays, skip and step bias of the columns."""
        matrices = sum(gemm.weights for gemm in self.gemms())
        vectors = self.conv + self.conv_bias + self.state + 2 + 2 * self.bias
        return matrices + vectors * self.columns

    @property
    def replicated_parameters(self) -> int:
        """Norms of step, keys and queries, and the output's bias: r + 2 N [+ h]."""
        return self._low + self.bias * self.hidden

    def gemms(self) -> tuple[Gemm, ...]:
        """Inputs (h -> 2 D), step, keys and queries (D -> r + 2 N), step, output."""
        h, wide = self.hidden, self.columns
        return (
            Gemm("scan_in", h, 2 * wide, "column", "attention"),
            Gemm("scan_low", wide, self._low, "row", "attention"),
            Gemm("scan_high", self.rank, wide, "column", "attention"),
            Gemm("attention_out", wide, h, "row", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Projected and convolved columns, low ranks, steps, the gated output.

        Left out: states every 2,048 tokens, below a hundredth of the rest.
        Source: github:state-spaces/mamba, mamba_ssm/ops/selective_scan_interface.py,
        SelectiveScanFn saves u, delta, A, B, C, D, z and the states.

        Returns:
            Tensors, widths per token. [1]
        """
        wide = self.columns
        return (
            SavedTensor("scan_input", 2 * wide, "tensor"),
            SavedTensor("latents", 2 * self._low, "sequence"),
            SavedTensor("qkv", wide, "tensor"),
            SavedTensor("scan_gates", wide, "tensor"),
            SavedTensor("scan_output", wide, "tensor"),
            SavedTensor("attention_output", wide, "tensor"),
        )

    def core_flops(self, context: float) -> float:
        """Forward FLOPs per token of the scan: 2 D N, reading the state by C.

        Left out, as in all counts of ours: work element by element, here the decay
        and the growth of the state, which the kernel's time has.

        Args:
            context: Ignored: the state has one size. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        assert context > 0
        return 2 * self.state_width

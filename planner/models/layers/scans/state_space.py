"""Selective state spaces: the scan of Mamba-2."""

from dataclasses import dataclass
from typing import ClassVar

from planner.models.layers.parts import Gemm, SavedTensor
from planner.models.layers.scans.scan import Ranks, Scan, ScanBlock


@dataclass(frozen=True)
class StateSpace(ScanBlock):
    """Selective state space (Mamba-2) behind a short convolution, and a gated norm.

    P = h (2 D + 2 g N + n) + (w + 1) (D + 2 g N) + 3 n + D + D h with D = n p: inputs,
    gate, keys B and queries C of each group, time step of each head; convolution with
    its bias; decay, time bias and skip of each head; norm; output.

    Source: Dao and Gu 2024, arXiv 2405.21060, sections 6 and 7; transformers 5.23,
    models/nemotron_h/modeling_nemotron_h.py.

    Args:
        hidden: Model width h. [1]
        state_heads: Heads n. [1]
        head_dim: Width p of a head. [1]
        groups: Groups g of heads that share keys and queries. [1]
        state: Width N of the state of one column. [1]
        conv: Taps w of the convolution along the sequence. [1]
        chunk: Tokens c of a chunk. [1]
        conv_bias: Bias on the convolution.
        bias: Biases on the input projection.
        out_bias: Bias on the output projection.
        gated_norm: A norm of the gated output; without it the gate alone.
    """

    scan: ClassVar[Scan] = "mamba2"

    hidden: int
    state_heads: int
    head_dim: int
    groups: int
    state: int
    conv: int
    chunk: int
    conv_bias: bool = True
    bias: bool = False
    out_bias: bool = False
    gated_norm: bool = True

    @property
    def heads(self) -> int:
        """Groups of heads: g."""
        return self.groups

    def shared_out(self, tp: int, cp: int) -> bool:
        """Tell if tensor and context ranks can share out the heads.

        Tensor ranks get whole groups. Context ranks get whole heads; a group whose
        heads lie on several of them is repeated there.

        Args:
            tp: Tensor ranks. [1]
            cp: Context ranks. [1]

        Returns:
            True where heads divide, and groups or their repeats, too.

        References:
            Megatron-LM core_v0.16.1, megatron/core/ssm/mamba_mixer.py and
            mamba_context_parallel.py.
        """
        if self.groups % tp or self.state_heads % (tp * cp):
            return False
        local = self.groups // tp
        return local % cp == 0 or cp % local == 0

    def repeated_width(self, ranks: Ranks) -> Ranks:
        """Columns of keys and queries that are repeated: 2 N (max(g, r) - g).

        Args:
            ranks: Tensor ranks times context ranks, r. [1]

        Returns:
            Columns, over all ranks. [1]
        """
        extra = ranks - self.groups
        return self.state * (extra + abs(extra))

    @property
    def out_width(self) -> int:
        """Columns of the scan's output: D = n p."""
        return self.state_heads * self.head_dim

    @property
    def conv_width(self) -> int:
        """Columns of inputs, keys and queries: D + 2 g N."""
        return self.out_width + 2 * self.groups * self.state

    @property
    def state_width(self) -> int:
        """Numbers of the state of one sequence: n p N."""
        return self.out_width * self.state

    @property
    def fused(self) -> tuple[tuple[str, str, int], ...]:
        """One part: gate, convolved columns and time steps.

        Returns:
            Part, product and columns. [text, text, 1]
        """
        return (("scan_in", "scan_in", self._inputs),)

    @property
    def _inputs(self) -> int:
        """Columns of the input projection: 2 D + 2 g N + n."""
        return self.out_width + self.conv_width + self.state_heads

    @property
    def sharded_parameters(self) -> int:
        """Projections, convolution, three vectors of heads, and the norm if any."""
        matrices = sum(gemm.weights for gemm in self.gemms())
        mixed = (self.conv + self.conv_bias) * self.conv_width
        vectors = 3 * self.state_heads + self.bias * self._inputs
        return matrices + mixed + vectors + self.gated_norm * self.out_width

    @property
    def replicated_parameters(self) -> int:
        """Bias of the output projection: [h]."""
        return self.out_bias * self.hidden

    def gemms(self) -> tuple[Gemm, ...]:
        """Inputs (h -> 2 D + 2 g N + n) and output (D -> h)."""
        h, out = self.hidden, self.out_width
        return (
            Gemm("scan_in", h, self._inputs, "column", "attention"),
            Gemm("attention_out", out, h, "row", "attention"),
        )

    def saved(self) -> tuple[SavedTensor, ...]:
        """Projected inputs, the scan's output, and the output of the gated norm.

        The fused kernel runs the convolution again, and makes the states again.
        Source: github:state-spaces/mamba, mamba_ssm/ops/triton/ssd_combined.py,
        MambaSplitConv1dScanCombinedFn; Megatron-LM's core/ssm/mamba_mixer.py runs it.

        Returns:
            Tensors, widths per token. [1]
        """
        out = self.out_width
        return (
            SavedTensor("scan_input", self._inputs, "tensor"),
            SavedTensor("scan_output", out, "tensor"),
            SavedTensor("attention_output", out, "tensor"),
        )

    def core_flops(self, context: float) -> float:
        """Forward FLOPs per token of the scan: 2 g c N + n (2 c p + 4 p N).

        Queries by keys of each group and scores by inputs of each head inside a chunk;
        the state is written and read once.

        Left out: decays, time steps, the convolution, states passed between chunks.

        Args:
            context: Tokens of a chunk, c. [1]

        Returns:
            FLOPs per token. [FLOP]
        """
        inside = 2 * context * (self.groups * self.state + self.out_width)
        return inside + 4 * self.state_width

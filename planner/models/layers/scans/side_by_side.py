"""A state space and attention side by side: both read the norm, and add up."""

from dataclasses import dataclass, replace

from planner.models.layers.attention import Attention
from planner.models.layers.parts import Gemm, SavedTensor
from planner.models.layers.scans.state_space import StateSpace

_NO_ATTENTION = Attention(hidden=1, heads=1, kv_heads=1, head_dim=0)


@dataclass(frozen=True)
class SideBySide(StateSpace):
    """Selective state space (Mamba-2) with attention beside it.

    P = P_state_space + P_attention; their outputs are summed.

    Source: Falcon-H1, arXiv 2507.22448, section 2.1; transformers 5.23,
    models/falcon_h1/modeling_falcon_h1.py, FalconH1DecoderLayer.

    Args:
        beside: Attention on the same input. [-]
    """

    beside: Attention = _NO_ATTENTION

    @property
    def sharded_parameters(self) -> int:
        """Those of the state space and of attention."""
        # The state space sums its own products: gemms() has those of both.
        outer = sum(g.weights for g in self.beside.gemms())
        scan = super().sharded_parameters - outer
        return scan + self.beside.sharded_parameters

    @property
    def replicated_parameters(self) -> int:
        """Those of the state space and of attention."""
        return super().replicated_parameters + self.beside.replicated_parameters

    def gemms(self) -> tuple[Gemm, ...]:
        """Products of the state space, then of attention.

        Returns:
            GEMMs; the output of attention under a name of its own. [1]
        """
        *queries, out = self.beside.gemms()
        return (*super().gemms(), *queries, replace(out, name="beside_out"))

    def saved(self) -> tuple[SavedTensor, ...]:
        """Tensors of both, their outputs as one.

        Returns:
            Tensors, widths per token. [1]
        """
        last = "attention_output"
        kept = [t for t in (*super().saved(), *self.beside.saved()) if t.name != last]
        both = self.out_width + self.beside.out_width
        return (*kept, SavedTensor(last, both, "tensor"))

    def index_flops(self, seq_len: float, *, causal: bool) -> float:
        """Forward FLOPs per token of the attention core, beside those of the scan.

        Args:
            seq_len: Tokens in a sequence. [1]
            causal: Count only scores that the mask leaves.

        Returns:
            FLOPs per token. [FLOP]
        """
        keys = self.beside.attended(seq_len, causal=causal)
        return self.beside.core_flops(keys)

"""A layer kind: attention, feed-forward and norms, which know their own counts."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from planner.models.layers.attention import Attention, AttentionBlock, LatentAttention
from planner.models.layers.compressed import CompressedAttention
from planner.models.layers.feedforward import Mlp, Moe
from planner.models.layers.parts import Block, Gemm, Region, SavedTensor, Split
from planner.models.layers.scans.kimi_delta import KimiDelta
from planner.models.layers.scans.lightning import Lightning
from planner.models.layers.scans.scan import GatedDelta, ScanBlock
from planner.models.layers.scans.selective import SelectiveScan
from planner.models.layers.scans.side_by_side import SideBySide
from planner.models.layers.scans.state_space import StateSpace
from planner.models.layers.shared import SharedBlock
from planner.models.layers.sparse import SparseLatentAttention
from planner.models.layers.streams import (
    AlternatingUpdates,
    HyperConnections,
    LayerInputs,
    Stream,
)

__all__ = [
    "NORM_VECTORS",
    "AlternatingUpdates",
    "Attention",
    "AttentionBlock",
    "Block",
    "CompressedAttention",
    "GatedDelta",
    "Gemm",
    "HyperConnections",
    "KimiDelta",
    "LatentAttention",
    "LayerInputs",
    "LayerKind",
    "Lightning",
    "Mlp",
    "Moe",
    "Norm",
    "Region",
    "Role",
    "SavedTensor",
    "ScanBlock",
    "SelectiveScan",
    "SharedBlock",
    "SideBySide",
    "SparseLatentAttention",
    "Split",
    "StateSpace",
    "Stream",
]

Role = Literal["trained", "passed", "below"]
Norm = Literal["rmsnorm", "layernorm", "layernorm-no-bias", "layernorm-plain"]

# RMSNorm has a weight; LayerNorm a weight and a bias, only the weight, or neither.
NORM_VECTORS: dict[Norm, int] = {
    "rmsnorm": 1,
    "layernorm": 2,
    "layernorm-no-bias": 1,
    "layernorm-plain": 0,
}
NORMS_BEFORE = 2
"""Most norms of a layer that has them before its halves alone. [1]"""


@dataclass(frozen=True)
class LayerKind(Block):
    """One kind of decoder layer; layers of a kind are alike in every count.

    P = P_attention + P_ffn + norms nu h [+ P_stream], with nu 1 for RMSNorm, 2 for
    LayerNorm.
    A half of width 0 is absent; a layer has at least one.

    Args:
        name: Name of the kind, unique in its model.
        attention: Attention block.
        ffn: Feed-forward block.
        norm: Kind of the layer's norms.
        norms: Norms over the model width: 2 before the halves, 4 with norms after
            them too, 1 if the halves share it or one is absent. [1]
        parallel: Both halves read the layer's input and add up.
        norm_behind: Norms stand behind the halves and not before them; with four
            they do both.
        role: Role in training: "trained", "passed" (frozen, but the gradient passes
            through), or "below" (frozen like all layers before it: no backward).
    """

    name: str
    attention: Attention | LatentAttention | CompressedAttention | ScanBlock
    ffn: Mlp | Moe
    norm: Norm
    norms: int = 2
    parallel: bool = False
    role: Role = "trained"
    norm_behind: bool = False
    stream: Stream | None = None

    @property
    def copies(self) -> int:
        """Copies of the residual stream."""
        return self.stream.copies if self.stream else 1

    @property
    def hidden(self) -> int:
        """Model width h.

        Returns:
            Columns of the residual stream. [1]
        """
        return self.attention.hidden

    @property
    def ends_in_norm(self) -> bool:
        """Tell if a norm keeps the output of the layer's last product."""
        return self.norm_behind or self.norms > NORMS_BEFORE

    @property
    def norm_parameters(self) -> int:
        """Parameters of the layer's norms: norms nu h.

        Left out: norms inside attention, which its block counts.
        """
        return self.norms * NORM_VECTORS[self.norm] * self.hidden

    @property
    def sharded_parameters(self) -> int:
        """Parameters that the tensor degree divides, of both halves."""
        return self.attention.sharded_parameters + self.ffn.sharded_parameters

    @property
    def replicated_parameters(self) -> int:
        """Parameters held in full on each tensor rank: halves', stream's, norms."""
        halves = self.attention.replicated_parameters + self.ffn.replicated_parameters
        beside = self.stream.replicated_parameters if self.stream else 0
        return halves + beside + self.norm_parameters

    @property
    def expert_parameters(self) -> int:
        """Parameters of the routed experts."""
        return self.ffn.expert_parameters

    @property
    def active_expert_parameters(self) -> int:
        """Parameters of the routed experts that one token meets."""
        return self.ffn.active_expert_parameters

    @property
    def is_shared(self) -> bool:
        """Tell if an earlier layer holds some of the layer's weights."""
        return not all(gemm.held for gemm in self.gemms())

    def gemms(self) -> tuple[Gemm, ...]:
        """Attention's GEMMs, then the feed-forward block's, then the stream's."""
        return self._gemms

    @cached_property
    def _gemms(self) -> tuple[Gemm, ...]:
        """GEMMs, which every count and price of a layer asks for."""
        beside = self.stream.gemms() if self.stream else ()
        return self.attention.gemms() + self.ffn.gemms() + beside

    def saved(self) -> tuple[SavedTensor, ...]:
        """Tensors kept for backward: input and output of norms, and the halves' own.

        Dense: 4 h (sequence) + (a + 2g) d + a d + n_m f (tensor) + a (fp32, tensor).
        The first is the layer's input, whichever half reads it. "ffn_norm_input"
        holds the inputs of all norms after the first: h (norms - 1), 0 if parallel.
        Of n copies of the stream, the first holds all, and the second those between.
        Source: Korthikanti et al. 2022, arXiv 2205.05198, section 4, without dropout.

        Returns:
            Tensors, widths per token. [1]
        """
        return self._saved

    @cached_property
    def _saved(self) -> tuple[SavedTensor, ...]:
        """Tensors kept for backward, which memory under every recompute asks for."""
        h, inner = self.hidden, 0 if self.parallel else self.norms - 1
        attention, ffn = self.attention.saved(), self.ffn.saved()
        shared = self.parallel and self.norms == 1
        between = self.stream.inner_copies if self.stream else 1
        first = (
            _normed("attention_norm_input", h * self.copies),
            SavedTensor("attention_norm_output", h if attention else 0, "sequence"),
            *attention,
        )
        second = (
            _normed("ffn_norm_input", inner * h * between),
            SavedTensor("ffn_norm_output", h if ffn and not shared else 0, "sequence"),
            *ffn,
            *(self.stream.saved() if self.stream else ()),
        )
        tensors = (*(replace(t, region="attention") for t in first), *second)
        return tuple(tensor for tensor in tensors if tensor.width)

    def forward_flops(self, seq_len: float, *, causal: bool) -> float:
        """Forward FLOPs per token: 2 N_mm + F_core [+ F_index] [+ F_mixed].

        Left out: norms, activations, softmax, biases and rotations.

        Args:
            seq_len: Tokens in a sequence. [1]
            causal: Count only scores that the mask leaves.

        Returns:
            FLOPs per token. [FLOP]
        """
        context = self.attention.attended(seq_len, causal=causal)
        index = self.attention.index_flops(seq_len, causal=causal)
        mixed = self.stream.mixed_flops if self.stream else 0
        core = self.attention.core_flops(context)
        return 2 * self.matmul_parameters + core + index + mixed


def _normed(name: str, width: int) -> SavedTensor:
    """Input of a norm, which the layer's stream holds."""
    return SavedTensor(name, width, "sequence", kept_for="norm")

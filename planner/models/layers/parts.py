"""Parts of the blocks of a layer: GEMMs, saved tensors, parameter classes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

Split = Literal["column", "row", "replicated", "expert-column", "expert-row"]
Region = Literal["attention", "ffn"]
Purpose = Literal["norm", "work"]
SavedSplit = Literal["sequence", "tensor", "expert"]
Precision = Literal["compute", "fp32"]


@dataclass(frozen=True)
class Gemm:
    """One matrix multiplication of a layer's forward pass: (tokens, K) x (K, N).

    Split says what the tensor degree divides: N ("column"), K ("row"), nothing
    ("replicated"), or N or K by the expert tensor degree ("expert-column",
    "expert-row"). Core attention is no Gemm: it has no weights.

    Args:
        name: Name of the product, unique in its layer.
        inputs: K, columns of the input. [1]
        outputs: N, columns of the output; fused matrices count together. [1]
        split: Division by tensor or expert parallelism.
        region: Half of the layer that the GEMM belongs to.
        calls: Copies of a token that pass through; top-k for an expert. [1]
        held: The layer holds the weights; False where an earlier one does.
    """

    name: str
    inputs: int
    outputs: int
    split: Split
    region: Region
    calls: int = 1
    held: bool = True

    @property
    def weights(self) -> int:
        """Weights of one copy: K * N.

        Returns:
            Weights, of one expert where the split is an expert's. [1]
        """
        return self.inputs * self.outputs

    @property
    def weights_per_token(self) -> int:
        """Weights that one token meets: K * N * calls."""
        return self.weights * self.calls


@dataclass(frozen=True)
class SavedTensor:
    """One tensor that a layer keeps from its forward pass for its backward pass.

    Split says what divides its tokens or columns: the tensor degree if sequence
    parallelism is on ("sequence"), the tensor degree always ("tensor"), or the
    experts' placement ("expert"). An expert's width counts all top-k copies of a
    token under perfect balance.

    Args:
        name: Name of the tensor, unique in its layer.
        width: Elements per token before any split. [1]
        split: Parallelism that divides the tensor.
        precision: "compute" follows the job's dtype, "fp32" is always 4 bytes.
        kept_for: "norm" is the input of a norm, which the layer's stream holds; "work"
            is what the operators of a half read or write.
        region: Half of the layer that the tensor belongs to, as the layer says.
    """

    name: str
    width: int
    split: SavedSplit
    precision: Precision = "compute"
    kept_for: Purpose = "work"
    region: Region = "ffn"


class Block(ABC):
    """Attention or feed-forward half of a layer: it counts itself.

    Parameters fall in three classes, which parallelism treats apart:
    sharded (divided by tp), replicated (by 1), expert (by ep * etp).
    """

    @property
    @abstractmethod
    def sharded_parameters(self) -> int:
        """Parameters that the tensor degree divides."""

    @property
    @abstractmethod
    def replicated_parameters(self) -> int:
        """Parameters that every tensor-parallel rank holds in full."""

    @abstractmethod
    def gemms(self) -> tuple[Gemm, ...]:
        """Matrix multiplications of the forward pass, in the order they run.

        Returns:
            GEMMs, fused where frameworks fuse them. [1]
        """

    @abstractmethod
    def saved(self) -> tuple[SavedTensor, ...]:
        """Tensors kept for backward with fused kernels and flash attention.

        Left out: dropout masks, and what an unfused stack keeps besides.

        Returns:
            Tensors, widths per token. [1]
        """

    @property
    def expert_parameters(self) -> int:
        """Parameters of the routed experts; 0 without experts."""
        return 0

    @property
    def active_expert_parameters(self) -> int:
        """Parameters of the routed experts that one token meets."""
        return self.expert_parameters

    @property
    def parameters(self) -> int:
        """All parameters: sharded + replicated + expert."""
        return (
            self.sharded_parameters
            + self.replicated_parameters
            + self.expert_parameters
        )

    @property
    def active_parameters(self) -> int:
        """Parameters that one token meets: sharded + replicated + active experts."""
        return (
            self.sharded_parameters
            + self.replicated_parameters
            + self.active_expert_parameters
        )

    @property
    def matmul_parameters(self) -> int:
        """Weights that one token is multiplied with: sum of K * N * calls.

        Left out: norms, biases, and experts the token is not routed to.
        """
        return sum(gemm.weights_per_token for gemm in self.gemms())

"""Bytes of a parameter under a ZeRO stage: a fact of a framework."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StateBytes:
    """Bytes per parameter: what every rank holds, and what is divided. [B]."""

    weights: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    sharded_weights: float = 0.0
    sharded_gradients: float = 0.0
    sharded_optimizer: float = 0.0
    state_bits: int | None = None
    """Width of the optimizer's moments at this stage; none: the recipe's. [bit]"""
    replica_buckets: float = 0.0
    """A second form of every gradient, where replicas reduce them. [B]"""
    computing: float = 0.0
    """Part of ``weights``: a copy to compute with, beside the updated weights. [B]"""
    step_gradients: float = 0.0
    """Part of the optimizer's bytes: gradients in the format of its step. [B]"""

    @property
    def narrow(self) -> bool:
        """True where no copy of a trained weight has more than 16 bits."""
        kept = max(self.weights - self.computing, self.sharded_weights)
        masters = self.optimizer + self.sharded_optimizer - self.step_gradients
        return kept <= 2 and masters <= 0

"""Memory of one layer or end at the moments outside a schedule's backwards. [B]."""

from dataclasses import dataclass, replace

from planner.cost.memory.optimizer_step_bytes import (
    embedding_temporaries,
    load_copies,
    quantising_bytes,
    save_staging,
    step_copies,
    step_working,
    tied_gradient,
    unit_bytes,
)
from planner.cost.meshes import Meshes
from planner.cost.parameters.rank_parameters import Owned
from planner.cost.parameters.states import late_gradients, state_bytes
from planner.cost.pricing import Pricing


@dataclass(frozen=True)
class Idle:
    """Memory of a unit outside the schedule's backwards, not rounded to blocks. [B]."""

    late: float = 0.0
    """Gradients that take the place of the unit's activations."""
    tied: float = 0.0
    """Gradient of a head that shares the embedding's table."""
    optimizer: float = 0.0
    """Optimizer states, not there before the first step."""
    root: float = 0.0
    """Tables and gradients that ZeRO-3 leaves whole, within a step alone."""
    made: float = 0.0
    """Temporaries of an end while the embedding's backward runs."""
    copied: float = 0.0
    """Copies in the optimizer step."""
    worked: float = 0.0
    """The largest tensor's working memory in the optimizer step."""
    gathered: float = 0.0
    """Whole parameters of the unit, gathered beside the place they are copied to."""
    saved: float = 0.0
    """Parameters gathered for a checkpoint, where all units are gathered together."""
    saved_alone: float = 0.0
    """Parameters gathered for a checkpoint, where units are gathered one by one."""
    loaded: float = 0.0
    """Second copy of the optimizer's moments while a run is resumed."""
    quantised: float = 0.0
    """A 16-bit linear beside its 4-bit form at start-up."""

    @classmethod
    def of(cls, pricing: Pricing, owned: Owned, meshes: Meshes) -> "Idle":
        """Memory of a unit outside the schedule's backwards.

        Returns:
            Memory of the unit. [B]
        """
        zero = int(meshes.zero.item())
        through = zero in (1, 2) and not pricing.recipe.gathers_in_place
        everything, alone = save_staging(pricing, owned, meshes)
        return cls(
            late=late_gradients(pricing, owned, meshes).item(),
            optimizer=state_bytes(pricing, owned, meshes).optimizer.item(),
            copied=step_copies(pricing, owned, meshes).item(),
            worked=step_working(pricing, owned, meshes).item(),
            gathered=unit_bytes(pricing, owned).item() if through else 0.0,
            saved=everything.item(),
            saved_alone=alone.item(),
            loaded=load_copies(pricing, owned, meshes).item(),
            quantised=quantising_bytes(pricing, owned, meshes).item(),
        )

    def at_end(
        self, pricing: Pricing, meshes: Meshes, which: int, root: float
    ) -> "Idle":
        """Memory of an end, with the temporaries of the embedding's backward.

        Args:
            pricing: The pricing. [-]
            meshes: The one mesh of a layout. [-]
            which: 0 for the embedding, 1 for the head. [1]
            root: Table and gradient of the end that ZeRO-3 leaves whole. [B]

        Returns:
            Memory of the end. [B]
        """
        made = embedding_temporaries(pricing, meshes)[which].item()
        tied = tied_gradient(pricing, meshes).item() if which else 0.0
        return replace(self, root=root, made=made, tied=tied)

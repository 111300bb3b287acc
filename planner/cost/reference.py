"""Forward passes of a frozen reference model, beside those of the model that trains."""

from planner.cost.time.columns import Parts
from planner.cost.workload import Workload

RUN = ("copy", "adapters")
"""Kinds of reference that run beside the policy, in every step. [text]"""


def reference_passes(workload: Workload) -> int:
    """Forward passes of a micro-batch through all layers.

    Returns:
        Two where a reference runs on the same sequences, without a backward. [1]

    References:
        Rafailov et al. 2023, arXiv 2305.18290; trl 1.16.0 trainer/dpo_trainer.py,
        _compute_loss: policy, then reference under no_grad.
    """
    return 2 if workload.training.reference in RUN else 1


def with_reference(workload: Workload, forward: Parts) -> Parts:
    """Forward of a unit, and again for the reference where one runs. [s].

    A reference under ZeRO-3 is sharded too, so that its gathers come again. Adapters
    that are off are counted as if they were on: under a hundredth of a pass.
    Leaves out that a second copy of the reference's weights lasts over steps.

    Args:
        forward: Forward of the unit by cause, collectives included.
    """
    passes = reference_passes(workload)
    if passes == 1:
        return forward
    return Parts().joined(forward, passes)

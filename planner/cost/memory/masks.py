"""Dense causal masks that a data loader makes and sends to the GPUs."""

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.pricing import Pricing
from planner.hardware.reading.quantities import Bytes, Column

BUILT = 8
"""Bytes of an element while a mask is made: fp32 ones, and their lower triangle. [B]"""
WORKERS = 2
"""Processes of a rank's data loader, Megatron-LM's --num-workers. [1]"""


def mask_bytes(pricing: Pricing, meshes: Meshes) -> tuple[Floats, Floats]:
    """Bytes of the masks of a micro-batch on a GPU of the first or last stage.

    A byte for each pair of tokens, ``b s^2``, of which context rank keeps its rows,
    ``b s^2 / c``, until the backward is over, as recomputed layers do.

    Returns:
        Held per micro-batch in flight; loaded beside that. [B], shape (meshes,) each

    Leaves out that masks go early where nothing is recomputed.

    References:
        Megatron-LM core_v0.16.1, megatron/training/utils.py, get_batch_on_this_tp_rank;
        core/utils.py, get_batch_on_this_cp_rank; core/transformer/transformer_block.py,
        whose checkpoints save the mask.
    """
    length = float(pricing.training.seq_len)
    mask = length**2 if pricing.profile.loads_masks else 0.0
    masks = meshes.micro_batch * mask
    return masks / meshes.cp, np.where(meshes.cp > 1, masks, 0.0)


def built_bytes(pricing: Pricing, meshes: Meshes) -> Column[Bytes]:
    """Bytes that the loader of a GPU of the first or last stage takes on its host.

    ``2 * 8 s^2`` by one of t tensor ranks: every process makes a mask of its own.

    Returns:
        Memory of a rank, its tensor group's shared out. [B], shape (meshes,)

    References:
        Megatron-LM core_v0.16.1, megatron/core/datasets/gpt_dataset.py,
        _get_ltor_masks_and_position_ids; --num-workers 2.
    """
    made = BUILT * float(pricing.training.seq_len) ** 2
    workers = WORKERS if pricing.profile.loads_masks else 0
    return workers * made / meshes.tp

"""Costs of a layer or an end beside its passes, in whole ns and blocks."""

from dataclasses import dataclass

import numpy as np

from planner.cost.memory.chance import spared_share
from planner.cost.meshes import Floats, Ints
from planner.cost.parameters.data_groups import DataGroups
from planner.cost.parameters.rank_parameters import Owned
from planner.cost.parameters.states import (
    late_gradients,
    optimizer_time,
    state_bytes,
    waiting_bytes,
)
from planner.cost.pricing import Pricing
from planner.cost.time.transfers import contention_time, twin_time, unit_transfers
from planner.errors import BadInputError
from planner.hardware.reading.quantities import (
    Blocks,
    Bytes,
    Column,
    IntColumn,
    Nanoseconds,
    Seconds,
)
from planner.specs.table import BLOCK

NANO = 1e9
"""Nanoseconds in a second. [1]"""
LONGEST = 1e6
"""Time of a part of a step beyond which an input is wrong. [s]"""
LARGEST = 1e16
"""Size of a part of a GPU's memory beyond which an input is wrong. [B]"""


@dataclass(frozen=True)
class Unit:
    """Costs of one unit that no recompute changes, shape (meshes,). ns and blocks."""

    static: IntColumn[Blocks]
    """States, less those spared. [block]"""
    spared: IntColumn[Blocks]
    """Counted states that a limit on the risk leaves out. [block]"""
    accumulated: Ints
    gather: Ints
    scatter: Ints
    optimizer: Ints
    weight: Ints
    pending: Ints
    twin: IntColumn[Nanoseconds]
    """Time to add gradients to a copy's gradients, where the model has a copy. [ns]"""

    def at(self, row: int, copies: int) -> dict[str, int]:
        """The costs of one mesh by name. [ns] and [block]."""
        columns = {name: int(column[row]) for name, column in vars(self).items()}
        twin = columns.pop("twin")
        columns["optimizer"] += twin if copies > 1 else 0
        return columns


def nanoseconds(time: Column[Seconds]) -> IntColumn[Nanoseconds]:
    """Round times to whole nanoseconds, once.

    Raises:
        BadInputError: A part takes longer than any step: a rate or a length is wrong.
    """
    longest = np.max(time, initial=0.0)
    if not longest <= LONGEST:
        raise BadInputError(
            f"a part of a step, as one layer's forward, would take {longest:.3g} s",
            field="hardware or training.seq_len",
            allowed=f"at most {LONGEST:g} s: look at the rates of the GPU, its memory "
            "and its links, and at the sequence length",
        )
    return np.rint(time * NANO).astype(np.int64)


def blocks(size: Column[Bytes]) -> IntColumn[Blocks]:
    """Round sizes up to whole allocator blocks, once.

    Raises:
        BadInputError: A part is larger than any memory: an input is wrong.
    """
    largest = np.max(size, initial=0.0)
    if not largest <= LARGEST:
        raise BadInputError(
            f"a part of the memory of one GPU would be {largest:.3g} B",
            field="stack.recipe or training.seq_len",
            allowed=f"at most {LARGEST:g} B: look at what the stack keeps of a number "
            "and at the sequence length",
        )
    return np.ceil(size / BLOCK).astype(np.int64)


def unit_costs(
    data: DataGroups, owned: Owned, weight: Column[Seconds], pending: Column[Bytes]
) -> Unit:
    """Round the costs of one unit beside its passes.

    Args:
        weight: Weight gradients, a part of the backward. [s], shape (meshes,)
        pending: Bytes that wait for the weight gradients. [B], shape (meshes,)

    Returns:
        The costs. [ns] and [block], shape (meshes,)
    """
    pricing, meshes = data.pricing, data.meshes
    gather, scatter, optimizer, twin = _times(data, owned)
    states = state_bytes(pricing, owned, meshes).total
    spared = _spared(pricing, states + late_gradients(pricing, owned, meshes))
    return Unit(
        static=blocks(states) - spared,
        spared=spared,
        accumulated=blocks(waiting_bytes(pricing, owned, meshes)),
        gather=nanoseconds(gather),
        scatter=nanoseconds(scatter),
        optimizer=nanoseconds(optimizer),
        weight=nanoseconds(weight * data.timed),
        pending=blocks(pending),
        twin=nanoseconds(twin),
    )


def _spared(pricing: Pricing, counted: Floats) -> IntColumn[Blocks]:
    """Counted states that a limit on the risk leaves out, rounded down. [block]."""
    return np.floor(spared_share(pricing) * counted / BLOCK).astype(np.int64)


def _times(data: DataGroups, owned: Owned) -> tuple[Floats, Floats, Floats, Floats]:
    """Gather, scatter, optimizer step and exchange with a copy, where wanted. [s]."""
    if not data.timed:
        none = data.meshes.zeros()
        return none, none, none, none
    gather, scatter = unit_transfers(data, owned)
    update = optimizer_time(data.pricing, owned, data.meshes)
    step = update + contention_time(data, owned, gather, scatter)
    return gather, scatter, step, twin_time(data, owned)

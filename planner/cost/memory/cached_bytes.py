"""Bytes that PyTorch's allocator keeps beyond the tensors, from its own rules.

Where a plan's steps can be replayed allocation by allocation, the caching allocator is
simulated on them. Elsewhere a stack's ratio of allocated over reserved memory counts.
"""

from collections.abc import Collection
from contextlib import suppress
from functools import cache
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.cost.memory.eager_bytes import replayed_cases
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.eager import EagerCase, Unsupported
from planner.eager.allocator.allocator import Settings
from planner.eager.allocator.steps import Steps, equal_steps, run, steps_of
from planner.specs.lengths import Draws, even_draws

STEPS = 2
"""Steps that are replayed: the second finds the optimizer's states in place. [1]"""
BATCHES = 1000
"""Micro-batches of a run of texts of several lengths: with twice as many a cache grows
by a tenth. [1]"""
ORDERS = 5
"""Orders of a run's texts that are replayed; their mean counts. [1]"""
ACCUMULATED = 2
"""Micro-batches that are replayed of those that accumulate, at most. [1]"""
SEED = 0
"""Seed of the draws: a job has one answer. [1]"""
FLAT = 2
"""Least ZeRO stage that FSDP1's flat parameters stand for. [1]"""
BLOCKS = 12
"""Blocks that are replayed on expandable segments, at most: deeper models map more
pages and leave no more of them unused. [1]"""


class Batches(NamedTuple):
    """Micro-batches of a run, each of which may need new memory."""

    tokens: tuple[int, ...] = ()
    """Tokens of each, in order; none where all are alike. [token]"""
    together: int = 1
    """Of them, those that the first step accumulates before the states are made. [1]"""


def cached_bytes(
    pricing: Pricing, meshes: Meshes, kinds: Collection[str]
) -> float | None:
    """Reserved less allocated memory of a rank, each at its peak.

    Counted for one pipeline stage whose tensors are whole on the rank, or whose
    sharded part is frozen. Under FSDP1 the run begins with the model's wrapping, whose
    cache it keeps; FSDP2's buffers of a gather, all of one size, are left out.

    Returns:
        Memory; None where the stack's ratio counts. [B]
    """
    if pricing.profile.allocator == "ratio" or len(kinds) != 1:
        return None
    if any(word.split()[0] == "fragmentation" for word in pricing.framework.by_hand):
        return None
    if (meshes.pp > 1) | (meshes.tp > 1) | (meshes.cp > 1) | (meshes.ep > 1):
        return None
    if meshes.zero > 0 and not pricing.training.frozen:
        return None
    for case, _ in replayed_cases(pricing, next(iter(kinds)), meshes):
        return _of_run(pricing, meshes, case)
    return None


def _of_run(pricing: Pricing, meshes: Meshes, case: EagerCase) -> float | None:
    """Cache of a case with the job's optimizer and gradients that accumulate. [B]."""
    grows = pricing.profile.allocator == "expandable"
    training, layers = pricing.training, pricing.model.layers
    sequences, count = int(meshes.micro_batch[0]), int(meshes.micro_batches[0])
    adam = training.optimizer.endswith("adamw")
    changes = {
        "ga": 1 if training.frozen else min(count, ACCUMULATED),
        "optimizer": "adamw" if adam else case.optimizer,
        "layers": min(layers, BLOCKS) if grows else layers,
    } | _flat(pricing, meshes)
    text = case.model_copy(update=changes).model_dump_json()
    draws = _texts(pricing)
    if draws is None or len(draws.lengths) == 1:
        return _cached(text, (Batches(),), grows=grows)
    return _cached(text, orders(draws, case.seq, sequences, count), grows=grows)


def _texts(pricing: Pricing) -> Draws | None:
    """Lengths of the texts of rows that differ; even where none are stated."""
    training = pricing.training
    below = pricing.recipe.lengths == "below" or training.rows == "longest"
    return training.uneven or (even_draws(training.seq_len) if below else None)


def _flat(pricing: Pricing, meshes: Meshes) -> dict[str, object]:
    """Fields of a case that FSDP1 shards; none without flat parameters."""
    zero, ranks = int(meshes.zero[0]), int(meshes.dp_shard[0])
    if zero < FLAT or ranks == 1 or not pricing.recipe.flat_parameters:
        return {}
    away = pricing.offload.parameters >= 1
    fields = {"zero": zero, "world": ranks, "mp": False, "flat": True, "offload": away}
    return fields | ({"optimizer": "none"} if pricing.offload.optimizer >= 1 else {})


@cache
def _cached(case: str, runs: tuple[Batches, ...], *, grows: bool) -> float | None:
    """Simulated cache of a case given as JSON; None where it is unsupported. [B].

    Of batches of several lengths, or of none where all are alike. The mean over the
    runs.
    """
    simulated = EagerCase.model_validate_json(case)
    try:
        steps = _steps(simulated, mixed=any(batches.tokens for batches in runs))
    except Unsupported:
        return None
    equal = Batches((simulated.seq,) * STEPS)
    return fmean(
        _kept(steps, batches if batches.tokens else equal, grows=grows)
        for batches in runs
    )


def _kept(steps: Steps, batches: Batches, *, grows: bool) -> int:
    """Bytes that the allocator of one run has beside the tensors. [B]."""
    settings = Settings(expandable=grows)
    allocator = run(steps, batches.tokens, settings, batches.together)
    return allocator.peak_reserved - allocator.peak_allocated


def _steps(case: EagerCase, *, mixed: bool) -> Steps:
    """Steps for any length; for one alone where sizes follow no power of it."""
    if mixed:
        with suppress(Unsupported):
            return steps_of(case)
    return equal_steps(case)


def orders(
    draws: Draws, tokens: int, sequences: int, accumulated: int = 1
) -> tuple[Batches, ...]:
    """Lengths of batches that need new memory, in several orders of a run's texts.

    A batch is padded to the longest of its sequences. A cache has room for a batch
    that is no longer than one before it, so those that are longer than all before them
    are replayed alone.

    Args:
        draws: Lengths of the texts. [token]
        tokens: Tokens of a batch that has the longest text. [token]

    Returns:
        Every such batch, for each order. [token]

    References:
        A. Renyi, "On the extreme elements of observations" (1962): ``ln n + 0.58``
        such of n draws; transformers data_collator.py, ``padding=True`` pads to the
        longest; torch/optim/adamw.py makes the states in the first step, whose
        micro-batches have by then cut the cache.
    """
    random = np.random.default_rng(SEED).random((ORDERS, BATCHES)) ** (1 / sequences)
    below = np.cumsum(draws.shares[:-1])
    lengths = np.array(draws.lengths)[np.searchsorted(below, random)]
    batches = np.maximum(np.rint(tokens * lengths / draws.longest), 1).astype(int)
    return tuple(_records(order, accumulated) for order in batches)


def _records(order: npt.NDArray[np.int64], accumulated: int) -> Batches:
    """Batches that are longer than all before them."""
    longest, place = np.unique(np.maximum.accumulate(order), return_index=True)
    return Batches(tuple(longest.tolist()), int((place < accumulated).sum()))

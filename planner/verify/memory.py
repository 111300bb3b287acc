"""Memory of every rank, replayed along its operations."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planner.cost.memory.buffers import (
    budget_bytes,
    buffer_bytes,
    context_bytes,
)
from planner.cost.memory.cached_bytes import cached_bytes
from planner.cost.memory.communicators import communication_bytes
from planner.schedules.operation import BACKWARD, FORWARD, Op
from planner.schedules.placement import placement
from planner.specs.table import BLOCK
from planner.verify.clocks.orders import orders_of
from planner.verify.moments import idle_moments
from planner.verify.price import Price
from planner.verify.prices import Prices
from planner.verify.recompute import kinds_used

GIB = 2**30
AGREES = 1e-3
"""Largest allowed relative difference from the claimed device memory. [1]"""


class Beside(NamedTuple):
    """Memory that every rank of a pool has beside states and activations."""

    buffers: float
    """Buffers of the stack. [B]"""
    fixed: float
    """Communicators and the driver's context. [B]"""
    cached: float | None
    """Cache of a simulated allocator; none where it is not simulated. [B]"""

    @classmethod
    def of(cls, prices: Prices) -> "Beside":
        """Look the memory up, once for all ranks of a pool."""
        pricing, meshes = prices.pricing, prices.meshes
        kinds = set(kinds_used(pricing, prices.layout))
        fixed = communication_bytes(pricing, meshes).item() + context_bytes(pricing)
        buffers = buffer_bytes(pricing, meshes).item()
        return cls(buffers, fixed, cached_bytes(pricing, meshes, kinds))


def memory_violations(prices: Prices, device_gib: Sequence[float]) -> Iterator[str]:
    """Check that every rank is within its limit and needs the claimed memory.

    Args:
        prices: The plan.
        device_gib: Device memory that was claimed. [GiB], shape (pp,)
    """
    layout = prices.layout
    if len(device_gib) != layout.pp:
        yield f"device memory is claimed of {len(device_gib)} ranks, pp is {layout.pp}"
        return
    counted, pools = counted_blocks(prices), dict[int, Beside]()
    for rank, (peak, claim) in enumerate(
        zip(peak_blocks(prices), device_gib, strict=True)
    ):
        here = prices.on(rank)
        beside = pools.get(id(here)) or pools.setdefault(id(here), Beside.of(here))
        if broken := _limit_broken(here, beside, peak, counted[rank]):
            yield f"pipeline rank {rank} {broken}"
        found = device_bytes(here, beside, peak) / GIB
        if not abs(found - claim) <= AGREES * found:
            yield (
                f"pipeline rank {rank} needs {found:.3f} GiB of device memory, "
                f"{claim:.3f} GiB were claimed"
            )


def _limit_broken(prices: Prices, beside: Beside, peak: int, counted: int) -> str:
    """The limit on a rank's memory, or on its risk, that is broken; else empty."""
    pricing = prices.pricing
    if pricing.risk is None:
        budget = int(budget_bytes(pricing, prices.meshes).item() // BLOCK)
        over = f"peaks at {peak} blocks of {BLOCK} B, its budget is {budget}"
        return over if peak > budget else ""
    chance = oom_chance(prices, beside, peak, counted)
    over = f"runs out of memory in {chance:.3%} of cases, {pricing.risk:.3%} may be"
    return over if chance > pricing.risk * (1 + AGREES) else ""


def oom_chance(prices: Prices, beside: Beside, peak: int, counted: int) -> float:
    """Probability that a rank needs more than its GPU has room for.

    The band scales what the rank needs beyond its states, which are counted.

    Args:
        prices: The plan.
        beside: What the rank has beside states and activations.
        peak: States and activations at their peak. [block]
        counted: States in the optimizer's step. [block]
    """
    pricing = prices.pricing
    own, room = pricing.profile, pricing.gpu.memory_capacity - pricing.spare
    tensors = peak * BLOCK + beside.buffers
    packed = tensors * own.memory_factor / own.packing
    states = counted * BLOCK * own.memory_factor
    if room <= states:
        return 1.0
    rest = packed + beside.fixed - states
    return pricing.uncertainty.beyond((room - states) / rest)


def counted_blocks(prices: Prices) -> list[int]:
    """States of every pipeline rank in the optimizer's step, gradients among them.

    Returns:
        Parameters times bytes, without what is whole for a step alone. [block]
    """
    layout = prices.layout
    place = placement(layout.schedule, layout.pp, layout.vpp)
    return [
        sum(
            unit.static + int((unit.idle.late - unit.idle.root) // BLOCK)
            for stage in place.of_rank(rank)
            for unit in prices.stages[stage % place.depth]
        )
        for rank in range(layout.pp)
    ]


def device_bytes(prices: Prices, beside: Beside, peak: int) -> float:
    """Memory that the driver reports: ``f (peak + buffers) / phi + NCCL + context``.

    If the sum exceeds the capacity, the allocator returns unused memory. Then phi
    grows up to the packing. The factor f is that of the user's own runs. Where the
    allocator is simulated, its cache takes the place of phi.

    Args:
        prices: The plan.
        beside: What the rank has beside states and activations.
        peak: States and activations at their peak. [block]

    Returns:
        Memory. [B]
    """
    pricing, fixed = prices.pricing, beside.fixed
    profile, capacity = pricing.profile, pricing.gpu.memory_capacity
    held = peak * BLOCK + beside.buffers
    allocated = held * profile.memory_factor
    roomy, packed = (
        float(allocated / share + fixed)
        for share in (profile.fragmentation, profile.packing)
    )
    if beside.cached is not None:
        reserved = (allocated + beside.cached) * profile.reserved_factor
        roomy = max(allocated, reserved) + fixed
    return roomy if roomy <= capacity else max(min(packed, roomy), capacity)


def peak_blocks(prices: Prices) -> list[int]:
    """Peak memory of every pipeline rank, during the passes and outside them.

    Returns:
        States and activations. [block], shape (pp,)
    """
    layout = prices.layout
    place = placement(layout.schedule, layout.pp, layout.vpp)
    # The middle that repeats releases as much memory as it allocates.
    orders = orders_of(layout, layout.grad_accum)
    ranks = [
        [prices.stages[stage % place.depth] for stage in place.of_rank(rank)]
        for rank in range(layout.pp)
    ]
    return [
        max(
            _replay(chunks, order.short),
            *_binding(prices.on(rank), chunks),
        )
        for rank, (chunks, order) in enumerate(zip(ranks, orders, strict=True))
    ]


def _binding(prices: Prices, chunks: Sequence[Sequence[Price]]) -> Iterator[int]:
    """Memory of a rank at the moments beside the passes that a plan must fit. [block].

    The resume is none of them where the search asks for training alone.
    """
    for name, held in idle_moments(prices, chunks).items():
        if name != "resume load" or prices.pricing.search.memory_moments == "all":
            yield held


def _replay(chunks: Sequence[Sequence[Price]], order: Sequence[Op]) -> int:
    """Peak memory of a rank over all operations of the order. [block].

    A forward allocates activations, and the backward releases them at its end. The
    backward itself adds transient memory. With split backwards the weight gradient
    releases activations instead. From B to W the gradients that W needs are held.
    """
    saved = [sum(unit.saved for unit in chunk) for chunk in chunks]
    # One layer or end at a time has its backward; the gradients of all wait.
    working = [
        max(unit.transient for unit in chunk) + sum(unit.accumulated for unit in chunk)
        for chunk in chunks
    ]
    release = "W" if any(op.kind == "W" for op in order) else "B"
    late = [sum(unit.pending for unit in chunk) for chunk in chunks]
    held = peak = sum(unit.static for chunk in chunks for unit in chunk)
    waiting: dict[tuple[int, int], int] = {}
    for kind, micro, chunk in order:
        held += saved[chunk] if kind in FORWARD else 0
        if kind == "B" and release == "W":
            waiting[micro, chunk] = late[chunk]
            held += late[chunk]
        peak = max(peak, held + (working[chunk] if kind in BACKWARD else 0))
        if kind == release:
            held -= saved[chunk] + waiting.pop((micro, chunk), 0)
    return peak

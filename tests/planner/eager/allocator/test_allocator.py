"""The simulated allocator against PyTorch's own, its invariants, and known answers."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.memory.allocator.traces import (
    DRAWN,
    REPLAYED,
    Event,
    drawn,
    key,
    replayed,
    reports,
    settings,
)
from planner.eager.allocator.allocator import Allocator, OutOfMemoryError, Settings
from planner.eager.allocator.blocks import GRAIN, MIB, Block

GOLDEN = json.loads(
    (Path(__file__).parents[3] / "golden" / "allocator.json").read_text()
)
"""Peaks that libc10_cuda.so of PyTorch 2.13.0 reported, by trace. [B]"""


def run(settings_: Settings, events: list[Event]) -> list[list[int]]:
    """Peaks of reserved and allocated memory at the reports, and at the end. [B]."""
    allocator, live = Allocator(settings_), dict[int, Block]()
    found: list[list[int]] = []
    for at, event in enumerate(events, 1):
        if event.size == 0:
            allocator.give(live.pop(event.number))
        else:
            try:
                live[event.number] = allocator.take(event.size, event.stream)
            except OutOfMemoryError:
                return found
        if reports(at):
            found.append([allocator.peak_reserved, allocator.peak_allocated])
    return [*found, [allocator.peak_reserved, allocator.peak_allocated]]


@each("seed", range(DRAWN))
def test_drawn_traces_reserve_what_pytorch_reserves(seed: int) -> None:
    """Every pool, setting and a full device, to the byte."""
    assert run(settings(seed), list(drawn(seed))) == GOLDEN[f"drawn {seed}"]


@pytest.mark.slow
@each("at", range(len(REPLAYED)))
def test_steps_reserve_what_pytorch_reserves(at: int) -> None:
    """Training steps of equal and of drawn lengths, to the byte."""
    case, given_ = REPLAYED[at]
    assert run(given_, list(replayed(case)))[-1:] == GOLDEN[key(case, given_)]


@given(st.integers(0, 10**6), st.sampled_from([0, 1, 2, 4]))
def test_invariants(seed: int, kind: int) -> None:
    """Blocks tile their segments, free neighbours are joined, counters add up."""
    allocator, live = Allocator(settings(kind)), dict[int, Block]()
    for event in list(drawn(seed))[:200]:
        if event.size:
            live[event.number] = allocator.take(event.size, event.stream)
        else:
            allocator.give(live.pop(event.number))
    taken = sum(block.size for block in live.values())
    assert taken == allocator.allocated <= allocator.reserved
    free = list(allocator.blocks())
    assert taken + sum(block.size for block in free) == allocator.reserved
    spans = sorted((b.address, b.address + b.size) for b in [*live.values(), *free])
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert not any(b.after and b.after.mapped and not b.after.taken for b in free)


def test_small_requests_share_a_segment() -> None:
    """512 B of 2 MiB, and 1 MiB + 1 B of 20 MiB."""
    allocator = Allocator()
    allocator.take(1)
    assert (allocator.allocated, allocator.reserved) == (GRAIN, 2 * MIB)
    allocator.take(MIB + 1)
    assert allocator.reserved == 22 * MIB


def test_a_longer_batch_finds_no_room_in_what_shorter_ones_left() -> None:
    """Two of 100 MiB, then two of 120: 440 MiB reserved for 240 in use."""
    allocator = Allocator()
    for size in (100 * MIB, 120 * MIB):
        blocks = [allocator.take(size) for _ in range(2)]
        for block in blocks:
            allocator.give(block)
    assert allocator.peak_allocated == 240 * MIB
    assert allocator.peak_reserved == 440 * MIB


def test_expandable_segments_grow_into_what_shorter_ones_left() -> None:
    """Expandable segments reserve 240 MiB for it."""
    allocator = Allocator(Settings(expandable=True))
    for size in (100 * MIB, 120 * MIB):
        blocks = [allocator.take(size) for _ in range(2)]
        for block in blocks:
            allocator.give(block)
    assert allocator.peak_reserved == 240 * MIB


def test_a_full_device_gets_cached_segments_back_before_it_fails() -> None:
    """A cached segment of 60 of 100 MiB goes for one of 80; a taken one does not."""
    allocator = Allocator(Settings(capacity=100 * MIB))
    allocator.give(allocator.take(60 * MIB))
    allocator.take(80 * MIB)
    assert (allocator.reserved, allocator.retries) == (80 * MIB, 1)
    with pytest.raises(OutOfMemoryError):
        allocator.take(60 * MIB)

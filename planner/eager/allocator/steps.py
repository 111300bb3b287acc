"""Allocations and frees of training steps, for batches of any length.

Replays of other lengths give every size of a step: a tensor has a part that no length
changes, a part per token, and scores a part per pair of tokens. One replay more than
that takes confirms the sizes and that the sequence is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.eager.allocator.allocator import Allocator, Settings
from planner.eager.allocator.blocks import Block
from planner.eager.case import EagerCase, Unsupported
from planner.eager.engine.storage import Trace
from planner.eager.iteration import Iteration
from planner.eager.sharding.parallel import ParallelIteration, parallel

Event = tuple[int, int]
"""Number and size of a storage; the size is 0 where it is freed. [B]"""
Sizes = npt.NDArray[np.int64]
STEP = 512
"""Distance of the lengths that are replayed, the first of which it is. [tokens]"""


@dataclass(frozen=True)
class Steps:
    """The sequence of a run: which storage, and its size at a length.

    A size is ``fixed + each * length + pairs * length^2``; all are zero where the
    storage is freed.
    """

    numbers: list[int]
    fixed: npt.NDArray[np.float64]
    each: npt.NDArray[np.float64]
    pairs: npt.NDArray[np.float64]
    marks: dict[str, int]
    streams: dict[int, int] = field(default_factory=dict)
    """Streams of the storages that are not of the stream that computes. [1]"""

    @cached_property
    def repeats(self) -> bool:
        """True if a second micro-batch frees all that it takes, and nothing else."""
        part = self.part(STEP, self.marks["first"], self.marks["passes"])
        left = set[int]()
        for number, size in part:
            if size:
                left.add(number)
            elif number not in left:
                return False
            else:
                left.remove(number)
        return not left and self.marks["first"] < self.marks["passes"]

    def part(self, length: int, start: int, end: int) -> Iterator[Event]:
        """Events of a part of the sequence at a length.

        Args:
            length: Tokens of a sequence. [tokens]
            start: Number of the first event. [1]
            end: Number of the event after the last. [1]

        Yields:
            Number and size of a storage, size 0 where it is freed. [B]
        """
        part = slice(start, end)
        # A text of one token has no next token: what is taken for it is empty.
        taken = self._sizes(part, STEP) > 0
        sizes = np.maximum(self._sizes(part, length), taken).tolist()
        yield from zip(self.numbers[part], sizes, strict=True)

    def _sizes(self, part: slice, length: int) -> Sizes:
        grown = (self.each[part] + self.pairs[part] * length) * length
        return np.rint(self.fixed[part] + grown).astype(np.int64)


def steps_of(case: EagerCase) -> Steps:
    """Follow the steps of a case as a GPU runs them.

    Args:
        case: The model and the way of training; its length is not heeded. [case]

    Returns:
        The sequence. [steps]

    Raises:
        Unsupported: When there are no operations for the case, or when its sizes do
            not grow with the length and its square.
    """
    traces = [_trace(case, STEP * i) for i in (1, 2, 3)]
    sizes = _alike(traces)
    bend = np.diff(sizes, 2, axis=0)[0]
    if bend.any():
        traces.append(_trace(case, STEP * 4))
        sizes = _alike(traces)
        if np.diff(sizes, 3, axis=0).any():
            raise Unsupported("sizes that are no sums of powers of the length")
    pairs = bend / (2 * STEP**2)
    each = (sizes[1] - sizes[0]) / STEP - 3 * STEP * pairs
    fixed = sizes[0] - STEP * (each + STEP * pairs)
    numbers = [number for number, _ in traces[0].events]
    return Steps(numbers, fixed, each, pairs, traces[0].marks, traces[0].streams)


def _alike(traces: list[Trace]) -> Sizes:
    """Sizes of several lengths; refuses lengths of other sequences. [B]."""
    numbers = [[number for number, _ in trace.events] for trace in traces]
    if any(other != numbers[0] for other in numbers):
        raise Unsupported("a sequence that changes with the length")
    return np.stack([_sizes(trace) for trace in traces])


def equal_steps(case: EagerCase) -> Steps:
    """Follow the steps of a case at its own length alone.

    Args:
        case: The model and the way of training. [case]

    Returns:
        The sequence, with the sizes of that length whatever length is asked. [steps]
    """
    trace = _trace(case, case.seq)
    sizes, numbers = _sizes(trace), [number for number, _ in trace.events]
    none = np.zeros(len(sizes))
    return Steps(
        numbers,
        sizes.astype(np.float64),
        none,
        none,
        trace.marks,
        trace.streams,
    )


def _trace(case: EagerCase, length: int) -> Trace:
    trace = Trace()
    kind = ParallelIteration if parallel(case) else Iteration
    at = case.model_copy(update={"seq": length})
    iteration = kind(at, tracked=False, trace=trace)
    iteration.run()
    trace.mark("end")
    iteration.tape.ledger.trace = None
    return trace


def _sizes(trace: Trace) -> Sizes:
    return np.array([size for _, size in trace.events], dtype=np.int64)


def run(
    steps: Steps,
    lengths: Iterable[int],
    settings: Settings | None = None,
    together: int = 1,
) -> Allocator:
    """Run steps one after the other on one GPU.

    Args:
        steps: The sequence. [steps]
        lengths: Tokens of the sequences of every step. [tokens]
        settings: Settings of the allocator. [settings]
        together: Of the lengths, those that the first step accumulates. [1]

    Returns:
        The allocator after the last step, with its peaks since the model was made.
        [allocator]
    """
    allocator, live = Allocator(settings), dict[int, Block]()
    _feed(allocator, live, made(steps), steps.streams)
    allocator.peak_allocated = allocator.allocated
    _feed(allocator, live, passes(steps, lengths, together), steps.streams)
    return allocator


def _feed(
    allocator: Allocator,
    live: dict[int, Block],
    every: Iterable[Event],
    streams: Mapping[int, int],
) -> None:
    """Take and give back as a run does."""
    for number, size in every:
        if size:
            live[number] = allocator.take(size, streams.get(number, 0))
        else:
            allocator.give(live.pop(number))


def events(steps: Steps, lengths: Iterable[int], together: int = 1) -> Iterator[Event]:
    """All allocations and frees of a run.

    Args:
        steps: The sequence. [steps]
        lengths: Tokens of the sequences of every step. [tokens]
        together: Of the lengths, those that the first step accumulates. [1]

    Yields:
        Number and size of a storage, size 0 where it is freed. [B]
    """
    yield from made(steps)
    yield from passes(steps, lengths, together)


def made(steps: Steps) -> Iterator[Event]:
    """Allocations and frees until the model is there.

    Weights that are wrapped come from the CPU: of all that was made before, what the
    wrapping leaves alone counts.

    Args:
        steps: The sequence. [steps]

    Yields:
        Number and size of a storage, size 0 where it is freed. [B]
    """
    end = steps.marks["model"]
    loaded = steps.marks.get("loaded", end)
    wrapped = list(steps.part(0, loaded, end))
    gone = {number for number, size in wrapped if not size}
    first = dict(_kept(steps.part(0, 0, loaded)))
    yield from (event for event in first.items() if event[0] not in gone)
    gone &= first.keys()
    yield from (event for event in wrapped if event[0] not in gone)


def passes(steps: Steps, lengths: Iterable[int], together: int = 1) -> Iterator[Event]:
    """Allocations and frees of the steps.

    The optimizer's states are made in the first step, after its last backward.

    Args:
        steps: The sequence. [steps]
        lengths: Tokens of the sequences of every step. [tokens]
        together: Of the lengths, those that the first step accumulates; 1 where micro
            batches leave more than gradients. [1]

    Yields:
        Number and size of a storage, size 0 where it is freed. [B]
    """
    marks, left = steps.marks, set[int]()
    together = together if steps.repeats else 1
    for place, length in enumerate(lengths):
        for start, end in _parts(place, together):
            if start == "states":
                # Inputs of the step before go as its own come.
                yield from ((number, 0) for number in left)
                left = set[int]()
            part = list(steps.part(length, marks[start], marks[end]))
            yield from part
            if start != "model":
                _follow(left, part)


def _parts(place: int, together: int) -> tuple[tuple[str, str], ...]:
    """Parts of the sequence that the length at a place of a run goes through."""
    if place >= together:
        return ("states", "passes"), ("passes", "end")
    ends = (("model", "states"), ("passes", "end")) if place == together - 1 else ()
    if together == 1:
        return ("states", "passes"), *ends
    return (("first", "passes") if place else ("states", "first")), *ends


def _follow(left: set[int], part: Iterable[Event]) -> None:
    """Keep the numbers that are taken and not freed."""
    for number, size in part:
        (left.add if size else left.discard)(number)


def _kept(part: Iterator[Event]) -> Iterator[Event]:
    """Storages that a part leaves, in the order in which they were made."""
    live: dict[int, int] = {}
    for number, size in part:
        if size:
            live[number] = size
        else:
            del live[number]
    yield from live.items()

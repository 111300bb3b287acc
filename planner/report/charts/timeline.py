"""One step as the schedule simulator runs it: what every pipeline rank does, when."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from planner.cost.estimate.breakdown import own_factor, work_by_rank
from planner.cost.estimate.pricing import Priced, price
from planner.cost.pipeline.splits import durations, graph_of, place_of, stage_vectors
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.schedules import Graph, Op, Placement, end_times
from planner.schedules.order import MOST_OPERATIONS, operation_count
from planner.specs.layouts.layout import Layout

Activity = Literal[
    "forward",
    "backward",
    "weight gradient",
    "optimizer",
    "gather parameters",
    "reduce gradients",
    "send forward",
    "send backward",
]
"""Activity of a span. [text]"""
COMPUTING: tuple[Activity, ...] = ("forward", "backward", "weight gradient")
"""Operations of micro-batches; the optimizer is computed, too, once a step. [text]"""
_KINDS: dict[str, Activity] = {
    "F": "forward",
    "P": "forward",
    "B": "backward",
    "H": "backward",
    "W": "weight gradient",
}


@dataclass(frozen=True)
class Span:
    """One operation or one exchange of one pipeline rank.

    Attributes:
        rank: Pipeline rank; of a send the receiving rank. [1]
        activity: Kind of operation or exchange. [text]
        start: Start, from the start of the step. [ns]
        end: End, from the start of the step. [ns]
        stage: Virtual stage in model order; none for the optimizer. [1]
        chunk: Index of the rank's chunk; none for the optimizer. [1]
        micro: Micro-batch; none for a span of the whole step. [1]
    """

    rank: int
    activity: Activity
    start: int
    end: int
    stage: int | None = None
    chunk: int | None = None
    micro: int | None = None

    @property
    def computes(self) -> bool:
        """True if kernels of the rank run. [bool]."""
        return self.activity in (*COMPUTING, "optimizer")


@dataclass(frozen=True)
class Timeline:
    """A whole step.

    Attributes:
        ranks: Pipeline ranks. [1]
        spans: Operations, sends, then collectives and optimizers. [-]
        makespan: End of the simulated step. [ns]
        slowdown: Factor of stragglers and of own runs on the whole step. [1]
        work: Time of every rank's passes by cause. [ns], shape (ranks,)
        step_factor: Factor of own runs in the slowdown. [1]
    """

    ranks: int
    spans: tuple[Span, ...]
    makespan: int
    slowdown: float
    work: tuple[dict[str, float], ...]
    step_factor: float = 1.0

    @cached_property
    def operations(self) -> tuple[Span, ...]:
        """Forwards and backwards of all micro-batches on all ranks."""
        return tuple(span for span in self.spans if span.activity in COMPUTING)

    @cached_property
    def waits(self) -> "tuple[Wait, ...]":
        """Idle times of every rank with their reasons, see `waits`."""
        return waits(self)

    @property
    def reason(self) -> str:
        """Reason why the step takes longer than the simulated step. [text]."""
        if self.step_factor == 1.0:
            return "stragglers among the replicas"
        return f"stragglers and the {self.step_factor:.3g} of your own runs"

    @property
    def step_s(self) -> float:
        """The step with stragglers and own runs. [s]."""
        return self.makespan * self.slowdown / 1e9


def too_long(layout: Layout) -> str:
    """Reason why a step is not drawn; empty where the step is drawn."""
    count = operation_count(layout.pp, layout.vpp, layout.grad_accum)
    if count <= MOST_OPERATIONS:
        return ""
    return (
        f"A step of {count:,} forwards and backwards is priced by the block that "
        f"repeats in it, and not drawn: charts and traces have at most "
        f"{MOST_OPERATIONS:,}."
    )


def timeline(workload: Workload, layout: Layout) -> Timeline:
    """Simulate one step of a layout and keep every operation.

    Returns:
        Operations and exchanges with start and end. [ns]

    Raises:
        BadInputError: The step has too many operations to keep each.

    Leaves out exchanges inside an operation (tensor, context and expert axes): where
    they are exposed they are part of its duration, and `work` says how much.
    """
    if words := too_long(layout):
        raise BadInputError(
            words, field="layout.grad_accum", value=layout.grad_accum, allowed="fewer"
        )
    priced = price(workload, layout)
    step = _Step(priced)
    work = work_by_rank(priced.table, priced.costs, priced.counts)
    return Timeline(
        ranks=priced.costs.pp,
        spans=tuple(step.spans()),
        makespan=step.ends[-1],
        slowdown=priced.costs.slowdown,
        work=tuple(rank.named for rank in work),
        step_factor=own_factor(priced.table),
    )


class _Step:
    """Reads the spans of a simulated step off its graph."""

    def __init__(self, priced: Priced) -> None:
        costs = priced.costs
        self.graph: Graph = graph_of(costs, unfolded=True)
        self.place: Placement = place_of(costs)
        x = durations(costs, stage_vectors(costs, priced.counts))
        self.ends = end_times(self.graph, x, costs.p2p)
        self.took = [x[slot] for slot in self.graph.table[:, 3].tolist()]
        self.p2p = costs.p2p

    def spans(self) -> Iterator[Span]:
        """Operations by rank, then sends by rank, then collectives and optimizers."""
        for rank, (order, nodes) in enumerate(
            zip(self.graph.orders, self.graph.streams, strict=True)
        ):
            for op, node in zip(order, nodes, strict=True):
                yield self._operation(rank, op, node)
        for rank, (order, nodes) in enumerate(
            zip(self.graph.orders, self.graph.streams, strict=True)
        ):
            for op, node in zip(order, nodes, strict=True):
                yield from self._sent(rank, op, node)
        yield from self._collectives()

    def _operation(self, rank: int, op: Op, node: int) -> Span:
        end, stage = self.ends[node], self.place.stage(rank, op.chunk)
        start = end - self.took[node]
        return Span(rank, _KINDS[op.kind], start, end, stage, op.chunk, op.micro)

    def _sent(self, rank: int, op: Op, node: int) -> Iterator[Span]:
        """The transfer that an operation's input came with, if any did."""
        first, second, lag, _ = self.graph.table[node].tolist()
        if not lag and first and self.graph.table[first][3] == self.graph.slots.zero:
            # A pair, or a backward that reduces, waits in a node of its own.
            _, second, lag, _ = self.graph.table[first].tolist()
        if lag and self.p2p:
            start = self.ends[second]
            way: Activity = "send forward" if op.kind in "FP" else "send backward"
            stage = self.place.stage(rank, op.chunk)
            end = start + lag * self.p2p
            yield Span(rank, way, start, end, stage, op.chunk, op.micro)

    def _collectives(self) -> Iterator[Span]:
        """Gathers and reductions that take time, and optimizers."""
        slots = self.graph.slots
        for node, slot in enumerate(self.graph.table[:, 3].tolist()):
            kind, stage = divmod(slot, slots.stages)
            if kind in (3, 4) and self.took[node]:
                yield self._collective(node, stage, gather=slot == slots.gather(stage))
            elif slots.opt(0) <= slot < slots.zero:
                start = self.ends[node] - self.took[node]
                yield Span(slot - slots.opt(0), "optimizer", start, self.ends[node])

    def _collective(self, node: int, stage: int, *, gather: bool) -> Span:
        """A reduction lasts until its tail behind the backward is over."""
        start, end = self.ends[node] - self.took[node], self.ends[node]
        after = node + 1
        if not gather and after < len(self.graph):
            last = self.graph.slots.last(stage)
            tails = self.graph.table[after][3] == last
            end = max(end, self.ends[after]) if tails else end
        activity: Activity = "gather parameters" if gather else "reduce gradients"
        rank, chunk = self.place.rank(stage), self.place.chunk(stage)
        return Span(rank, activity, start, end, stage, chunk)


WAITS = ("gather parameters", "reduce gradients", "pipeline send", "bubble")
"""Reasons why a rank does not compute. [text]"""


@dataclass(frozen=True)
class Wait:
    """A time in which a rank computes nothing.

    Attributes:
        rank: Pipeline rank. [1]
        why: One of `WAITS`. [text]
        start: Start, from the start of the step. [ns]
        end: End, from the start of the step. [ns]
    """

    rank: int
    why: str
    start: int
    end: int


def waits(step: Timeline) -> tuple[Wait, ...]:
    """Idle times of every rank, each with the reason.

    Before an operation: bubble until the input is sent, then the pipeline send, then
    the gather of parameters. Before the optimizer: the reduction of the rank's own
    gradients. Any other idle time is bubble.

    Returns:
        Waits of every rank; a rank's waits and operations add up to the step. [ns]
    """
    found = (wait for rank in range(step.ranks) for wait in _waits(step, rank))
    return tuple(wait for wait in found if wait.end > wait.start)


def _waits(step: Timeline, rank: int) -> Iterator[Wait]:
    mine = [span for span in step.spans if span.rank == rank]
    runs = sorted((s for s in mine if s.computes), key=lambda s: (s.start, s.end))
    sends: dict[tuple[str, int | None, int | None], Span] = {
        (s.activity, s.stage, s.micro): s
        for s in mine
        if s.activity.startswith("send ")
    }
    gathers = [s for s in mine if s.activity == "gather parameters"]
    scatters = [s for s in mine if s.activity == "reduce gradients"]
    at = 0
    for run in runs:
        sent = sends.get((f"send {run.activity}", run.stage, run.micro))
        moves = scatters if run.activity == "optimizer" else gathers
        yield from _split(rank, at, run.start, sent, moves)
        at = max(at, run.end)
    yield Wait(rank, "bubble", at, step.makespan)


def _split(
    rank: int, start: int, end: int, sent: Span | None, moves: Sequence[Span]
) -> Iterator[Wait]:
    """One gap before an operation, split by the reasons of the wait."""
    if end <= start:
        return
    if sent is not None:
        left = min(max(sent.start, start), end)
        yield Wait(rank, "bubble", start, left)
        start = min(max(sent.end, left), end)
        yield Wait(rank, "pipeline send", left, start)
    for move in sorted(moves, key=lambda span: span.start):
        if move.end <= start or move.start >= end:
            continue
        begin = max(move.start, start)
        yield Wait(rank, "bubble", start, begin)
        start = min(move.end, end)
        yield Wait(rank, move.activity, begin, start)
    yield Wait(rank, "bubble", start, end)


def time_by_rank(step: Timeline) -> dict[str, list[float]]:
    """Time of every rank in the simulated step: work by cause, waits by reason.

    Returns:
        Cause to time, each of shape (ranks,); a rank's causes add up to the step. [s]
    """
    found: dict[str, list[float]] = {}

    def add(cause: str, rank: int, time: float) -> None:
        found.setdefault(cause, [0.0] * step.ranks)[rank] += time / 1e9

    for rank, causes in enumerate(step.work):
        for cause, time in causes.items():
            add(cause, rank, time)
    for span in step.spans:
        if span.activity == "optimizer":
            add("optimizer", span.rank, span.end - span.start)
    for wait in step.waits:
        add(wait.why, wait.rank, wait.end - wait.start)
    return {cause: times for cause, times in found.items() if any(times)}

"""The graph's longest path is the step, checked by a second, naive simulator."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.schedules import (
    SCHEDULES,
    SPLIT,
    V_SHAPED,
    Graph,
    Op,
    Slots,
    busy,
    compute_times,
    critical_path,
    end_times,
    idle,
    makespan,
    operations,
    pipeline_graph,
    rank_paths,
)
from planner.schedules import graph as graph_module


class Case(NamedTuple):
    """One schedule with its durations, all drawn at random."""

    schedule: str
    p: int
    v: int
    m: int
    overlap_gather: bool
    overlap_scatter: bool
    scatter_every: int
    x: list[int]
    p2p: int

    def graph(self) -> Graph:
        return pipeline_graph(
            self.schedule,
            self.p,
            self.v,
            self.m,
            overlap_gather=self.overlap_gather,
            overlap_scatter=self.overlap_scatter,
            scatter_every=self.scatter_every,
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    schedule = draw(st.sampled_from(SCHEDULES))
    p, m = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    v = draw(st.integers(1, 3)) if schedule == "interleaved" and p > 1 else 1
    if v > 1:
        m = p * draw(st.integers(1, 3))
    if schedule in V_SHAPED:
        v = 2
    if schedule == "dualpipe":
        p, m = 2 * -(-p // 2), 2 * m
    if schedule in {"dualpipe", "dualpipe-v"}:
        m += 2 * p
    return Case(
        schedule,
        p,
        v,
        m,
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.integers(1, m + 1)),
        draw(durations(Slots(p, v))),
        draw(st.integers(0, 20)),
    )


@st.composite
def durations(draw: st.DrawFn, slots: Slots) -> list[int]:
    """Every kind of duration has its own magnitude, so that each is exposed."""
    x = []
    for size in [slots.stages] * 7 + [slots.p]:
        most = draw(st.sampled_from([0, 3, 30, 300]))
        x += draw(st.lists(st.integers(0, most), min_size=size, max_size=size))
    return [*x, 0]


class Naive:
    """Plays a step event by event, in dictionaries, from the rules in words."""

    def __init__(self, case: Case) -> None:
        self.case, self.stages = case, case.p * case.v
        names = ("F", "B", "W", "gather", "scatter", "first", "last")
        self.cost = {
            (name, stage): case.x[i * self.stages + stage]
            for i, name in enumerate(names)
            for stage in range(self.stages)
        }
        self.ends = {self.stages - 1}
        self.lies = {s: (s % case.p, s // case.p) for s in range(self.stages)}
        if case.schedule in V_SHAPED:
            self.lies |= {s: (2 * case.p - 1 - s, 1) for s in range(case.p, 2 * case.p)}
        if case.schedule == "dualpipe":
            self.ends.add(case.p - 1)
        self.micros = case.m // len(self.ends)
        self.stage = {place: stage for stage, place in self.lies.items()}
        self.gathered = {
            self.stage[r, c]: sum(
                self.cost["gather", self.stage[r, before]] for before in range(c + 1)
            )
            for r, c in self.stage
        }
        self.kept: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
        self.compute = dict.fromkeys(range(case.p), 0)
        self.network = dict.fromkeys(range(case.p), 0)
        self.queued = dict.fromkeys(range(case.p), 0)
        self.done: dict[tuple[str, int, int], int] = {}

    def step(self) -> int:
        case = self.case
        if not case.overlap_gather:
            last = case.v - 1
            self.compute = {
                r: self.gathered[self.stage[r, last]] for r in range(case.p)
            }
        orders = operations(case.schedule, case.p, case.v, case.m)
        waiting = {rank: list(order) for rank, order in enumerate(orders)}
        while any(waiting.values()):
            for rank, left in waiting.items():
                needs = self.all_needs(left, rank)
                if left and all(need in self.done for need in needs):
                    self.run(left.pop(0), rank, needs)
        return max(
            max(self.compute[r] + self.queued[r], self.network[r])
            for r in range(case.p)
        ) + max(case.x[7 * self.stages + r] for r in range(case.p))

    def all_needs(self, left: list[Op], rank: int) -> list[tuple[str, int, int]]:
        """Of a pair, what both of its halves need."""
        both = left[:2] if left and left[0].kind == "P" else left[:1]
        return [
            need for op in both for need in self.needs(op, self.stage[rank, op.chunk])
        ]

    def needs(self, op: Op, stage: int) -> list[tuple[str, int, int]]:
        if op.kind in {"F", "P"}:
            first = stage == 0 or stage - 1 in self.ends
            return [] if first else [("F", stage - 1, op.micro)]
        if op.kind == "W":
            return [] if self.kept[self.lies[stage][0]] else [("B", stage, op.micro)]
        later = [] if stage in self.ends else [("B", stage + 1, op.micro)]
        return [("F", stage, op.micro), *later]

    def run(self, op: Op, rank: int, needs: list[tuple[str, int, int]]) -> None:
        case, start, stage = self.case, self.compute[rank], self.stage[rank, op.chunk]
        kind = {"P": "F", "H": "B"}.get(op.kind, op.kind)
        for need in needs:
            hop = case.p2p if self.lies[need[1]][0] != rank else 0
            start = max(start, self.done[need] + hop)
        end = start + self.cost[kind, stage]
        if kind == "F" and op.micro == 0 and case.overlap_gather:
            before = self.gathered[self.stage[rank, op.chunk - 1]] if op.chunk else 0
            start = max(start, before + self.cost["first", stage])
            end = max(start + self.cost["F", stage], self.gathered[stage])
        self.compute[rank] = end
        self.kept[rank].append((kind, stage, op.micro))
        if op.kind not in {"P", "H"}:
            self.done |= dict.fromkeys(self.kept.pop(rank), end)
        if op.kind == ("W" if case.schedule in SPLIT else "B"):
            self.reduce(op, rank, stage, (start, end))

    def reduce(self, op: Op, rank: int, stage: int, ran: tuple[int, int]) -> None:
        if (op.micro + 1) % self.case.scatter_every and op.micro != self.micros - 1:
            return
        if self.case.overlap_scatter:
            sent = max(ran[0], self.network[rank]) + self.cost["scatter", stage]
            self.network[rank] = max(sent, ran[1] + self.cost["last", stage])
        else:
            self.queued[rank] += self.cost["scatter", stage]


@settings(max_examples=examples(400))
@given(cases())
def test_longest_path_equals_the_naive_simulation(case: Case) -> None:
    assert makespan(case.graph(), case.x, case.p2p) == Naive(case).step()


@given(cases(), st.data())
def test_paths_are_tight_where_found_and_bounds_elsewhere(
    case: Case, data: st.DataObject
) -> None:
    graph = case.graph()
    step = makespan(graph, case.x, case.p2p)
    critical = critical_path(graph, case.x, case.p2p)
    assert critical.value(case.x, case.p2p) == step
    other = data.draw(durations(graph.slots))
    p2p = data.draw(st.integers(0, 50))
    bound = makespan(graph, other, p2p)
    paths = rank_paths(graph, case.x, case.p2p)
    assert len(paths) == case.p
    for path in (critical, *paths):
        assert path.value(case.x, case.p2p) <= step
        assert path.value(other, p2p) <= bound


@given(cases())
def test_rank_path_is_the_longest_through_its_middle_operation(case: Case) -> None:
    """A delay D beyond all else, charged to one operation, forces the path there."""
    graph, delay = case.graph(), 10**6
    for rank, path in enumerate(rank_paths(graph, case.x, case.p2p)):
        stream = graph.streams[rank]
        middle = stream[len(stream) // 2]
        slots = graph.table[1:, 3].tolist()
        slots[middle - 1] = graph.slots.n_slots
        delayed = [*case.x, case.x[graph.table[middle, 3]] + delay]
        ends = [0]
        for row, slot in zip(graph.table[1:].tolist(), slots, strict=True):
            ready = max(ends[row[0]], ends[row[1]] + row[2] * case.p2p)
            ends.append(ready + delayed[slot])
        assert path.value(case.x, case.p2p) == ends[-1] - delay


@given(cases(), st.data())
def test_makespan_grows_with_every_duration(case: Case, data: st.DataObject) -> None:
    graph = case.graph()
    slot = data.draw(st.integers(0, graph.slots.n_slots - 2))
    longer = list(case.x)
    longer[slot] += data.draw(st.integers(1, 30))
    step = makespan(graph, case.x, case.p2p)
    assert makespan(graph, longer, case.p2p) >= step
    assert makespan(graph, case.x, case.p2p + 1) >= step


@given(cases(), st.integers(0, 1000))
def test_makespan_scales_with_the_unit_of_time(case: Case, factor: int) -> None:
    graph = case.graph()
    scaled = makespan(graph, [factor * t for t in case.x], factor * case.p2p)
    assert scaled == factor * makespan(graph, case.x, case.p2p)


@given(cases())
def test_same_question_same_path(case: Case) -> None:
    """Ties included: a graph built anew gives the same counts."""
    flat = [int(t > 25) for t in case.x]
    first = critical_path(case.graph(), flat, 1)
    graph_module._CACHE.graphs.clear()
    again = critical_path(case.graph(), flat, 1)
    assert first.counts.tolist() == again.counts.tolist()
    assert first.p2p == again.p2p


@given(cases())
def test_gantt_follows_the_order_and_fills_the_busy_time(case: Case) -> None:
    graph = case.graph()
    rows = compute_times(graph, case.x, case.p2p)
    assert [[i.op for i in row] for row in rows] == [list(o) for o in graph.orders]
    for row, time in zip(rows, busy(graph, case.x), strict=True):
        assert all(before.end <= after.start for before, after in pairwise(row))
        assert sum(i.end - i.start for i in row) == time
    step = makespan(graph, case.x, case.p2p)
    bubbles = zip(idle(graph, case.x, case.p2p), busy(graph, case.x), strict=True)
    assert all(bubble + time == step for bubble, time in bubbles)


@given(cases())
def test_nodes_come_after_both_predecessors(case: Case) -> None:
    graph = case.graph()
    assert all(row[0] < i and row[1] < i for i, row in enumerate(graph.table) if i)
    assert len(end_times(graph, case.x, case.p2p)) == len(graph)


def test_slots_tile_the_vector() -> None:
    slots = Slots(3, 2)
    parts = (slots.f, slots.b, slots.w, slots.gather, slots.scatter, slots.first)
    indices = [part(stage) for part in (*parts, slots.last) for stage in range(6)]
    indices += [slots.opt(rank) for rank in range(3)]
    assert [*indices, slots.zero] == list(range(slots.n_slots))


def one_rank(**flags: bool) -> int:
    """F 10, B 20, GATHER 5 of which FIRST 1, SCATTER 30, LAST 2, OPT 3; m = 2."""
    overlap = {"overlap_gather": True, "overlap_scatter": True} | flags
    graph = pipeline_graph(
        "1f1b",
        1,
        1,
        2,
        overlap_gather=overlap["overlap_gather"],
        overlap_scatter=overlap["overlap_scatter"],
        scatter_every=2,
    )
    return makespan(graph, [10, 20, 0, 5, 30, 1, 2, 3, 0], 7)


def test_exposed_communication_of_one_rank_by_hand() -> None:
    assert one_rank() == 1 + 30 + 10 + 30 + 3
    assert one_rank(overlap_gather=False) == 5 + 30 + 10 + 30 + 3
    assert one_rank(overlap_scatter=False) == 1 + 60 + 30 + 3


def test_second_chunk_waits_for_its_parameters_by_hand() -> None:
    """Gathers of 100 end at 100 and 200; the second chunk's forward at 200 at least.

    F = B = 10, FIRST = 30, p = v = m = 2, no p2p. The first forward of chunk 1
    has its input at 110, starts at 100 + 30 and is not over before 200.
    """
    graph = pipeline_graph(
        "interleaved",
        2,
        2,
        2,
        overlap_gather=True,
        overlap_scatter=True,
        scatter_every=2,
    )
    x = [10] * 8 + [0] * 4 + [100] * 4 + [0] * 4 + [30] * 4 + [0] * 4 + [0] * 3
    rows = compute_times(graph, x, 0)
    starts = {(rank, op): start for rank in (0, 1) for op, start, _ in rows[rank]}
    assert starts[0, Op("F", 0, 0)] == 30
    assert starts[0, Op("F", 1, 0)] == 100
    assert starts[1, Op("F", 0, 0)] == 100
    assert starts[0, Op("F", 0, 1)] == 130
    assert starts[0, Op("F", 1, 1)] == 200
    assert starts[1, Op("F", 0, 1)] == 200


def test_durations_of_another_graph_are_refused() -> None:
    case = Case("1f1b", 2, 1, 2, True, True, 2, [], 0)  # noqa: FBT003
    with pytest.raises(ValueError, match=r"x has 3 durations; .* needs 17"):
        makespan(case.graph(), [1, 2, 0], 0)
    with pytest.raises(ValueError, match="must be 0, not 1"):
        makespan(case.graph(), [1] * 17, 0)


def test_scatter_every_must_be_positive() -> None:
    with pytest.raises(ValueError, match="scatter_every=0"):
        pipeline_graph(
            "1f1b", 2, 1, 2, overlap_gather=True, overlap_scatter=True, scatter_every=0
        )


def test_old_graphs_leave_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache holds at most its number of nodes, and always the newest graph."""
    monkeypatch.setattr(graph_module, "MAX_CACHED_NODES", 100)
    graphs = graph_module._CACHE.graphs
    graphs.clear()
    for m in (2, 4, 6, 8):
        newest = Case("1f1b", 2, 1, m, True, True, 2, [], 0).graph()  # noqa: FBT003
        assert next(reversed(graphs.values())) is newest
        assert Case("1f1b", 2, 1, m, True, True, 2, [], 0).graph() is newest  # noqa: FBT003
        assert sum(map(len, graphs.values())) <= 100 or len(graphs) == 1
    assert 0 < len(graphs) < 4


def test_a_pair_starts_and_ends_as_one_by_hand() -> None:
    """DualPipeV on two ranks: F 2, B 3, W 1 and a transfer of 5.

    Rank 1: F00 7-9, F01 9-11, ..., H01 26-29 once rank 0's B01 (18-21) is there,
    W01 29-30, P21 30-32, H00 32-35, W00 35-36. Rank 0's W11 ends at 30, and its
    P21 waits for both results of that pair, which leave at 36: 41-43.
    """
    graph = pipeline_graph(
        "dualpipe-v",
        2,
        2,
        4,
        overlap_gather=True,
        overlap_scatter=True,
        scatter_every=4,
    )
    x = [2] * 4 + [3] * 4 + [1] * 4 + [0] * (graph.slots.n_slots - 12)
    rows = compute_times(graph, x, 5)
    spans = {(rank, i.op): (i.start, i.end) for rank in (0, 1) for i in rows[rank]}
    assert spans[1, Op("H", 0, 1)] == (26, 29)
    assert spans[1, Op("P", 2, 1)] == (30, 32)
    assert spans[0, Op("W", 1, 1)] == (29, 30)
    assert spans[0, Op("P", 2, 1)] == (41, 43)
    assert spans[0, Op("W", 0, 0)] == (46, 47)

"""The operation graph of a schedule: fixed shape, durations filled in later."""

from collections import OrderedDict
from threading import Lock

from planner.schedules.builder import Builder, Graph
from planner.schedules.folding import Settings, folded_graph
from planner.schedules.order import check

MAX_CACHED_NODES = 400_000
"""Nodes of all graphs kept for reuse, at about 250 B each. [1]"""


class _Cache:
    """The graphs used last, as many as have ``MAX_CACHED_NODES`` together."""

    def __init__(self) -> None:
        self.graphs: OrderedDict[tuple[object, ...], Graph] = OrderedDict()
        self.lock = Lock()

    def get(self, key: tuple[object, ...]) -> Graph | None:
        with self.lock:
            if key in self.graphs:
                self.graphs.move_to_end(key)
            return self.graphs.get(key)

    def put(self, key: tuple[object, ...], graph: Graph) -> None:
        with self.lock:
            self.graphs[key] = graph
            nodes = sum(map(len, self.graphs.values()))
            while nodes > MAX_CACHED_NODES and len(self.graphs) > 1:
                nodes -= len(self.graphs.popitem(last=False)[1])


_CACHE = _Cache()


def pipeline_graph(
    schedule: str,
    p: int,
    v: int,
    m: int,
    *,
    overlap_gather: bool,
    overlap_scatter: bool,
    scatter_every: int,
    unfolded: bool = False,
) -> Graph:
    """Build the graph whose paths are everything that a step waits for.

    Compute stream of a rank: its operations in order. F(i) waits for F(i - 1),
    B(i) for B(i + 1), one p2p later if that is on another rank. In dualpipe the
    stages of the other direction are a second, separate chain.

    Gather stream: the all-gathers of chunks 0, 1, ... from time 0. Overlapped,
    the first forward of chunk j starts FIRST after gather j - 1. Its results are not
    there before gather j is. Otherwise the first operation waits for all gathers.

    Scatter stream: after every ``scatter_every``-th micro-batch of a chunk, and
    after its last. Overlapped, the reduce-scatter starts with that backward (W
    where it exists). It is over no earlier than LAST after the backward's end; the
    rank's next reduce-scatter waits for it. Otherwise all run after the last operation.

    The optimizers start when the scatters of all ranks are over, because
    clipping needs the norm of all gradients. The step ends with the last optimizer.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        overlap_gather: Parameters arrive while forwards run. [bool]
        overlap_scatter: Gradients leave while backwards run. [bool]
        scatter_every: Micro-batches of one reduce-scatter; m or more for one a
            step. [1]
        unfolded: Every operation is a node, however many there are. [bool]

    Returns:
        The graph, shared between callers: about
        ``p v m (2 or 3) + 4 p v + 4 p v ceil(m / scatter_every)`` nodes. [1]
        A long step has the graph of a short step, with the block that repeats
        in its ``fold``.

    Raises:
        ValueError: The schedule is unknown or does not exist for these numbers.

    Leaves out that transfers share links, and that communication slows compute:
    both belong in the durations.
    """
    every = min(scatter_every, m)
    key = (schedule, p, v, m, overlap_gather, overlap_scatter, every, unfolded)
    graph = _CACHE.get(key)
    if graph is None:
        check(schedule, p, v, m)
        shape = (schedule, p, v, m)
        settings = Settings(
            overlap_gather=overlap_gather,
            overlap_scatter=overlap_scatter,
            scatter_every=every,
        )
        graph = folded_graph(*shape, settings) if not unfolded else None
        graph = graph or Builder(*shape, **settings).build()
        _CACHE.put(key, graph)
    return graph

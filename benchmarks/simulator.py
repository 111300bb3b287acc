"""Time of one simulation of a step: ``python -m benchmarks.simulator``."""

from collections.abc import Callable
from time import perf_counter

from planner.schedules import critical_path, makespan, peaks, pipeline_graph, rank_paths

CASES = (
    ("1f1b", 8, 1, 64),
    ("1f1b", 16, 1, 128),
    ("zb-h1", 16, 1, 128),
    ("zb-v", 16, 2, 128),
    ("dualpipe-v", 16, 2, 128),
    ("dualpipe", 16, 2, 128),
    ("interleaved", 16, 8, 16),
    ("interleaved", 16, 8, 128),
)
OPERATIONS = 4_000
"""Forwards, backwards and weight gradients to which times are scaled. [1]"""


def best_of(runs: int, call: Callable[[], object]) -> float:
    """Least wall time of several calls: the time of the least disturbed call.

    Args:
        runs: Calls to time. [1]
        call: Function to time.

    Returns:
        Wall time of the fastest call. [s]
    """
    times = []
    for _ in range(runs):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def report(schedule: str, p: int, v: int, m: int) -> str:
    """Time one schedule with unequal stages, overlap on.

    Args:
        schedule: Name of the schedule. [text]
        p: Pipeline ranks. [1]
        v: Chunks of a rank. [1]
        m: Micro-batches in a step. [1]

    Returns:
        A row: sizes, then microseconds per 4,000 operations. [text]
    """
    graph = pipeline_graph(
        schedule, p, v, m, overlap_gather=True, overlap_scatter=True, scatter_every=m
    )
    x = [1_000_000 + 997 * slot for slot in range(graph.slots.n_slots - 1)] + [0]
    done = sum(map(len, graph.orders))
    scale = 1e6 * OPERATIONS / done
    times = [
        scale * best_of(30, lambda: makespan(graph, x, 50_000)),
        scale * best_of(10, lambda: critical_path(graph, x, 50_000)),
        scale * best_of(5, lambda: rank_paths(graph, x, 50_000)),
        scale * best_of(3, lambda: peaks.__wrapped__(schedule, p, v, m)),
    ]
    size = f"{schedule:12} {p:3} {v:3} {m:4} {done:7,} {len(graph):7,}"
    return size + "".join(f"{time:10.0f}" for time in times)


def main() -> None:
    """Print the table."""
    print(f"microseconds per {OPERATIONS:,} operations, one core, best of several")
    print(
        "schedule       p   v    m     ops   nodes      step  critical     ranks",
        end="",
    )
    print("     peaks")
    for case in CASES:
        print(report(*case))


if __name__ == "__main__":
    main()

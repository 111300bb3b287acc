"""Pipeline schedules: operation order, exact simulation, activations in flight.

Pure and integer: durations in ns go in, and the step time comes out. That is the
longest path of a graph whose shape depends on the schedule alone.

In all modules p is the number of pipeline ranks, v of chunks of a rank, and m of
micro-batches in a step; p2p is one transfer between neighbouring ranks.
"""

from planner.schedules.builder import Graph
from planner.schedules.closed_forms import (
    bubble_fraction,
    bubble_ratio,
    interleaved_lower_bound,
    lower_bound_1f1b,
    p2p_delay,
    uniform_makespan,
    upper_bound_1f1b,
)
from planner.schedules.graph import pipeline_graph
from planner.schedules.inflight import Peak, in_flight, peaks
from planner.schedules.operation import Kind, Op
from planner.schedules.order import SCHEDULES, SPLIT, operations
from planner.schedules.placement import V_SHAPED, Placement, placement
from planner.schedules.simulator import (
    Interval,
    Path,
    busy,
    compute_times,
    critical_path,
    end_times,
    idle,
    makespan,
    rank_paths,
)
from planner.schedules.slots import Slots

__all__ = [
    "SCHEDULES",
    "SPLIT",
    "V_SHAPED",
    "Graph",
    "Interval",
    "Kind",
    "Op",
    "Path",
    "Peak",
    "Placement",
    "Slots",
    "bubble_fraction",
    "bubble_ratio",
    "busy",
    "compute_times",
    "critical_path",
    "end_times",
    "idle",
    "in_flight",
    "interleaved_lower_bound",
    "lower_bound_1f1b",
    "makespan",
    "operations",
    "p2p_delay",
    "peaks",
    "pipeline_graph",
    "placement",
    "rank_paths",
    "uniform_makespan",
    "upper_bound_1f1b",
]

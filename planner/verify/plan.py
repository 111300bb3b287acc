"""Violations of a plan, one sentence each."""

from collections.abc import Sequence

from planner.cost.workload import Workload
from planner.specs.layouts.layout import Layout
from planner.verify.clocks.clock import time_violations
from planner.verify.legality import rule_violations
from planner.verify.memory import memory_violations
from planner.verify.placement import placement_violations
from planner.verify.prices import Prices


def violations(
    workload: Workload,
    layout: Layout,
    *,
    step_s: float,
    device_gib: Sequence[float],
) -> list[str]:
    """Check the rules, ranks, memory and step time of a plan again.

    Rules come first: a layout that breaks a rule cannot be placed or priced. Then
    the ranks of every group are listed. Memory is replayed event by event along the
    operation order. The step is simulated with clocks and messages.

    Args:
        workload: The job that was planned.
        layout: The layout that was returned.
        step_s: Step time that was claimed. [s]
        device_gib: Device memory that was claimed. [GiB], shape (pp,)

    Returns:
        One sentence with numbers per violation, none for a sound plan. [text]

    Leaves out the formulas of single operators, which are the cost model's, and
    whether a faster plan exists.
    """
    # A layout that was priced, not searched for, may have no words in launch files.
    broken = rule_violations(workload.unwritten(), layout)
    if broken:
        return [breach.sentence for breach in broken]
    prices = Prices.of(workload, layout)
    return [
        *placement_violations(workload, layout),
        *memory_violations(prices, device_gib),
        *time_violations(prices, step_s),
    ]

"""Terms of a step beside the passes of its busiest rank: formulas of the simulator."""

from planner.cost.estimate.breakdown import Around
from planner.cost.pricing import Pricing
from planner.cost.why.facts import in_force, link_sources, memory_sources
from planner.cost.why.terms import Term

NANO = 1e-9
"""Seconds in a nanosecond. [s]"""
DATA_PARALLEL = ("overlap_param_gather", "overlap_grad_reduce", "overlap_contention")
"""Switches and constants that move the exposed time of data parallelism. [text]"""


def around_terms(pricing: Pricing, times: Around, name: str, p2p: int) -> list[Term]:
    """Times under one cause that no forward or backward of a rank takes.

    Args:
        pricing: The job under its layout.
        times: Times around the passes. [ns]
        name: The cause, or part of `other`. [text]
        p2p: One transfer between stages. [ns]

    Returns:
        Leaves, none for most causes. [s]
    """
    makers = {
        "optimizer": lambda: [_update(pricing, times)],
        "dp_comm": lambda: _data_parallel(pricing, times),
        "pp_comm": lambda: [_transfers(pricing, times, p2p)],
        "step_overhead": lambda: [_overhead(pricing, times)],
    }
    return makers[name]() if name in makers else []


def _update(pricing: Pricing, times: Around) -> Term:
    return Term(
        name="update",
        title=f"optimizer step of pipeline rank {times.updating}",
        value=times.update * NANO,
        formula="sum over units of bytes of states / (efficiency W)",
        source=memory_sources(pricing),
    )


def _data_parallel(pricing: Pricing, times: Around) -> list[Term]:
    stack = in_force(pricing, *DATA_PARALLEL)
    lost = Term(
        name="contention",
        title="compute slowed down by collectives beside it",
        value=times.contention * NANO,
        formula="contention x collectives of the step",
        source=link_sources(pricing),
        stack=stack,
    )
    shown = Term(
        name="collectives",
        title="gathers and scatters outside the layers",
        value=times.collectives * NANO,
        formula="step with free transfers - with free gathers and scatters, too",
        source=link_sources(pricing),
        stack=stack,
    )
    return [lost, shown]


def _transfers(pricing: Pricing, times: Around, p2p: int) -> Term:
    return Term(
        name="transfers",
        title=f"transfers between stages, {p2p * NANO:.3g} s each",
        value=times.transfers * NANO,
        formula="step - step with free transfers",
        source=link_sources(pricing),
        stack=in_force(pricing, "stage_scatter"),
    )


def _overhead(pricing: Pricing, times: Around) -> Term:
    return Term(
        name="overhead",
        title="host work of every step",
        value=times.overhead * NANO,
        formula="step_overhead",
        numbers={"step_overhead": times.overhead * NANO},
        stack=in_force(pricing, "step_overhead"),
    )


def rest_term(times: Around, busy: float, *, pipelined: bool) -> Term:
    """Time of the step that neither the busiest rank's work nor the rest explains.

    Args:
        times: Times around the passes. [ns]
        busy: Work of the busiest rank. [ns]
        pipelined: True where ranks wait for each other. [bool]

    Returns:
        The bubble; without a pipeline, rounding. [s]
    """
    around = times.update + times.contention + times.overhead
    around += times.transfers + times.collectives
    name, title = "rounding", "rest of the simulated step, rounding among it"
    if pipelined:
        name, title = "waits", "waits of the busiest rank for other stages"
    numbers = {"step": times.step, "busy": busy, "around": around}
    return Term(
        name=name,
        title=title,
        value=(times.step - busy - around) * NANO,
        formula="step - busy - around",
        numbers={symbol: time * NANO for symbol, time in numbers.items()},
    )


def straggler_term(
    pricing: Pricing, times: Around, slowdown: float, factor: float
) -> Term:
    """Time that the slowest node takes beyond the mean.

    Args:
        pricing: The job under its layout.
        times: Times around the passes. [ns]
        slowdown: Factor on the step, the user's own factor included. [1]
        factor: The user's own factor. [1]

    Returns:
        The straggler; slowdown = factor (1 + straggler sqrt(2 ln nodes)). [s]
    """
    step = times.step * NANO
    return Term(
        name="slowest",
        title="slowest node over the mean: 1 + straggler sqrt(2 ln nodes)",
        value=step * (slowdown - factor),
        formula="step * (slowdown - factor)",
        numbers={"step": step, "slowdown": slowdown, "factor": factor},
        stack=in_force(pricing, "straggler", "step_factor"),
    )

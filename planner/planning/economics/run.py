"""A whole run: time, cost, energy, and the assumptions behind them."""

from collections.abc import Sequence
from itertools import pairwise

from planner.planning.economics.interrupted import (
    Goodput,
    fleet_of,
    goodput,
    write_time,
)
from planner.planning.economics.money import (
    carbon_t,
    energy_mwh,
    gpu_hours,
    nodes_paid,
    run_cost,
)
from planner.planning.economics.run_assumptions import assumptions
from planner.planning.economics.stretches import Stretch, scaled, summed
from planner.planning.economics.terms import RunTerms, run_terms
from planner.specs.answer.estimate import Interval
from planner.specs.answer.run import Run, RunCheckpoint, RunNodes, RunStretch

__all__ = ["RunTerms", "run_terms", "whole_run"]


def whole_run(
    stretches: Sequence[Stretch], terms: RunTerms, *, rule: str = "given"
) -> Run:
    """Time, interruptions, GPU-hours, cost and energy of a run.

    ::

        time = sum over stretches of steps * step time / effective share + reshards

    Stragglers are in the step time already. Time, GPU-hours, cost, energy and carbon
    carry the interval of the step time; prices and power are taken as known.

    Returns:
        The run. [-]

    Leaves out planned interruptions, evaluation, data, storage and people.
    """
    found = [goodput(stretch, terms) for stretch in stretches]
    reshard = _reshard(stretches, terms)
    walls = [
        scaled(stretch.productive_s, 1 / good.share)
        for stretch, good in zip(stretches, found, strict=True)
    ]
    whole = summed([*walls, Interval(value=reshard, low=reshard, high=reshard)])
    interrupted = [
        scaled(wall, 1 / good.between) for wall, good in zip(walls, found, strict=True)
    ]
    energy = energy_mwh(stretches, walls, terms, reshard=reshard)
    return Run(
        tokens=sum(stretch.tokens for stretch in stretches),
        tokens_rule=rule,
        time_to_train_s=whole,
        effective_share=_share(stretches, terms, whole.value - reshard),
        interruptions=summed(interrupted),
        gpu_hours=gpu_hours(stretches, walls, terms, reshard=reshard),
        cost_usd=run_cost(stretches, walls, terms, energy, reshard=reshard),
        energy_mwh=energy,
        carbon_t=carbon_t(energy, terms),
        checkpoint=_checkpoint(stretches, found, terms),
        nodes=_nodes(stretches, terms),
        reshard_s=reshard,
        stretches=tuple(map(_run_stretch, stretches, walls)),
        assumptions=assumptions(stretches, terms),
    )


def _share(stretches: Sequence[Stretch], terms: RunTerms, wall_s: float) -> Interval:
    """Effective share at the assumed, the worst and the best failure rate."""

    def at(failures: float | None) -> float:
        walls = sum(
            one.productive_s.value / goodput(one, terms, failures).share
            for one in stretches
        )
        return sum(one.productive_s.value for one in stretches) / walls

    worst, best = terms.failure_range
    value = sum(one.productive_s.value for one in stretches) / wall_s
    return Interval(value=value, low=min(at(worst), value), high=max(at(best), value))


def _reshard(stretches: Sequence[Stretch], terms: RunTerms) -> float:
    """Time between layouts: a checkpoint written and read, and a restart. [s]."""
    total = 0.0
    for before, after in pairwise(stretches):
        if _moves(before, after):
            moved = write_time(before, terms) + write_time(after, terms)
            total += terms.restart.value + moved
    return total


def _moves(before: Stretch, after: Stretch) -> bool:
    """True where the phase changes, or the layout beyond gradient accumulation."""
    fewer = {"grad_accum": after.layout.grad_accum}
    same = before.layout.model_copy(update=fewer) == after.layout
    return before.phase != after.phase or not same


def _checkpoint(
    stretches: Sequence[Stretch], found: Sequence[Goodput], terms: RunTerms
) -> RunCheckpoint:
    pairs = zip(stretches, found, strict=True)
    largest, good = max(pairs, key=lambda pair: pair[0].saved.total_gib)
    return RunCheckpoint(
        total_gib=largest.saved.total_gib,
        write_s=good.write,
        stall_s=good.stall,
        interval_s=good.interval,
        asynchronous=terms.asynchronous,
    )


def _nodes(stretches: Sequence[Stretch], terms: RunTerms) -> RunNodes:
    """Nodes of the last stretch."""
    fleet = fleet_of(stretches[-1])
    return RunNodes(
        training=sum(part.training for part in fleet),
        idle=sum(part.idle for part in fleet),
        spare=terms.spare_nodes,
        paid=sum(nodes_paid(stretches[-1], terms).values()),
    )


def _run_stretch(stretch: Stretch, wall: Interval) -> RunStretch:
    training = stretch.workload.training
    return RunStretch(
        name=stretch.name,
        tokens=stretch.tokens,
        steps=stretch.steps,
        step_time_s=stretch.estimate.step_time_s,
        sequences=training.sequences,
        seq_len=training.seq_len,
        time_s=wall,
    )

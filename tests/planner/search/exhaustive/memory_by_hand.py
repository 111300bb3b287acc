"""Memory of a rank, one moment and one unit at a time, from the schedule's peaks."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.cost.pipeline.in_flight import peak_vectors
from planner.cost.pipeline.splits import Counts, stages_of
from planner.schedules.inflight import Peak
from planner.specs.table import EndCosts, IdleMoment, LayerCosts, StageCosts

Moment = tuple[int, Peak | IdleMoment]
"""Pipeline rank, and the start of a backward or an idle moment."""


def peaks_of(costs: StageCosts) -> Iterator[Moment]:
    """Starts of backwards, rank by rank."""
    shape = costs.schedule, costs.pp, costs.vpp, costs.micro_batches
    for rank, peaks in enumerate(peak_vectors(*shape)):
        yield from ((rank, peak) for peak in peaks)


def idle_of(costs: StageCosts) -> Iterator[Moment]:
    """Idle moments, moment by moment."""
    for moment in costs.idle:
        yield from ((rank, moment) for rank in range(costs.pp))


def units_of(
    costs: StageCosts, stage: int, counts: Counts
) -> Iterator[tuple[int, EndCosts]]:
    """Units of one stage with their number: layers under one entry, and the ends."""
    for kind, entry in np.argwhere(counts[stage] > 0).tolist():
        number = int(counts[stage, kind, entry])
        yield number, _layer(costs.layers[kind], entry)
    if stage == 0:
        yield 1, costs.embedding
    if stage == costs.stages - 1:
        yield 1, costs.head


def _layer(layer: LayerCosts, entry: int) -> EndCosts:
    return EndCosts(
        saved=layer.saved[entry],
        transient=layer.transient[entry],
        static=layer.static,
        accumulated=layer.accumulated,
        pending=layer.pending,
    )


def blocks_at(costs: StageCosts, counts: Counts, at: Moment) -> int:
    """Memory of a rank at one moment. [block]."""
    rank, moment = at
    if isinstance(moment, IdleMoment):
        return _idle_blocks(as_units(costs, moment), counts, rank)
    total = 0
    for chunk, stage in enumerate(stages_of(costs, rank)):
        for number, unit in units_of(costs, stage, counts):
            held = unit.static + moment.counts[chunk] * unit.saved
            held += moment.pending[chunk] * unit.pending
            total += number * (held + (chunk == moment.chunk) * unit.accumulated)
    at_work = units_of(costs, stages_of(costs, rank)[moment.chunk], counts)
    return total + max((unit.transient for _, unit in at_work), default=0)


def as_units(costs: StageCosts, moment: IdleMoment) -> StageCosts:
    """Costs whose states and transients are those of an idle moment."""
    return replace(
        costs,
        layers=tuple(
            replace(layer, saved=held, transient=beside)
            for layer, held, beside in zip(
                costs.layers, moment.layers, moment.beside, strict=True
            )
        ),
        embedding=replace(
            costs.embedding, saved=moment.embedding, transient=moment.embedding_beside
        ),
        head=replace(costs.head, saved=moment.head, transient=moment.head_beside),
    )


def _idle_blocks(costs: StageCosts, counts: Counts, rank: int) -> int:
    units = [
        each
        for stage in stages_of(costs, rank)
        for each in units_of(costs, stage, counts)
    ]
    held = sum(number * (unit.static + unit.saved) for number, unit in units)
    return held + max((unit.transient for _, unit in units), default=0)


def peak_of(costs: StageCosts, counts: Counts, rank: int) -> int:
    """Memory of a rank at the fullest of all moments. [block]."""
    moments = (*peaks_of(costs), *idle_of(costs))
    return max(blocks_at(costs, counts, at) for at in moments if at[0] == rank)

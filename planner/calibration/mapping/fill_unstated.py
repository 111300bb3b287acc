"""Settles what a measured row leaves open, by the prediction and never by the fit.

A published run was tuned by its authors. An unstated micro-batch or depth of
interleaving is the fastest that fits. An unstated recomputation is none, or the least
that fits.
"""

from dataclasses import replace

from planner.calibration.mapping.case import Case
from planner.calibration.mapping.layouts import interleaved, recomputing
from planner.calibration.notes.recompute import stages_of
from planner.calibration.notes.rules import rules
from planner.calibration.rows.vocabulary import RecomputeWords
from planner.errors import BadInputError
from planner.planning.prediction.predict import predict
from planner.specs.answer.estimate import Estimate
from planner.specs.layouts.layout import PartialLayout

MICRO_BATCHES = (1, 2, 4, 8, 16, 32)
EIGHTHS = 8
"""Steps of the share of layers that may be recomputed. [1]"""


def with_unstated_filled(case: Case) -> Case:
    """A case with its open micro-batch, interleaving and recomputation chosen."""
    options = _options(case)
    if len(options) > 1:
        case = _with_fastest(case, options)
    if case.row.normalised.recompute.kind == "unknown" and not _plain(case):
        case = _with_recompute(case)
    return case


def _plain(case: Case) -> bool:
    """True where the recipe neither interleaves nor recomputes."""
    return rules().finetuning.holds(case.stack, case.row.job.task)


def _options(case: Case) -> list[PartialLayout]:
    """Every cut of the batch and of the stages that the row leaves open."""
    return [
        split
        for cut in _cuts(case)
        for depth in _depths(case, cut)
        for split in _splits(
            case,
            interleaved(cut, depth, case.row.normalised.recompute)
            if depth > 1
            else cut,
        )
    ]


def _splits(case: Case, cut: PartialLayout) -> list[PartialLayout]:
    """The layout, and with the last stage short where layers do not divide evenly.

    Tuned runs fill every virtual stage and leave the rest to the last, beside head
    and MTP module.
    """
    words, layers = case.row.normalised, case.workload.model.layers
    stages = (cut.pp or 1) * (cut.vpp or 1)
    full = -(-layers // stages)
    rest = layers - full * (stages - 1)
    stated = words.pipeline.stages or words.pipeline.count_as_layer
    tuned = case.stack in rules().interleaving.tuned
    if stated or not tuned or layers % stages == 0 or rest < 0:
        return [cut]
    counts = (*([full] * (stages - 1)), rest)
    short = stages_of(counts, words.recompute, cut.pp or 1)
    return [cut, cut.model_copy(update={"stages": short})]


def _cuts(case: Case) -> list[PartialLayout]:
    """The layout with every micro-batch that divides, where none is stated."""
    layout, given = case.layout, case.row.layout
    if given.micro_batch is not None or given.grad_accum is not None:
        return [layout]
    each = (layout.micro_batch or 1) * (layout.grad_accum or 1)
    return [
        layout.model_copy(update={"micro_batch": size, "grad_accum": each // size})
        for size in MICRO_BATCHES
        if each % size == 0
    ]


def _depths(case: Case, cut: PartialLayout) -> list[int]:
    """Virtual stages per rank that divide layers evenly, 1 first."""
    words, pp = case.row.normalised, cut.pp or 1
    split = words.pipeline.stages or words.pipeline.count_as_layer
    said = case.row.layout.schedule or case.row.layout.vpp
    stated = words.schedule.stated or split or said
    tuned = case.stack in rules().interleaving.tuned and not _plain(case)
    if stated or pp == 1 or not tuned or (cut.grad_accum or 1) % pp:
        return [cut.vpp or 1]
    layers = case.workload.model.layers
    most = -(-layers // pp)
    return [depth for depth in range(1, most + 1) if layers % (pp * depth) == 0] or [1]


def _with_fastest(case: Case, options: list[PartialLayout]) -> Case:
    """The fastest option that fits; the first where none fits."""
    steps = [_step_if_fits(case, option) for option in options]
    best = options[steps.index(min(steps))]
    flag = f"micro-batch {best.micro_batch} and interleaving {best.vpp or 1} assumed"
    return replace(case, layout=best, flags=(*case.flags, f"{flag}: fastest that fits"))


def _step_if_fits(case: Case, layout: PartialLayout) -> float:
    """Step time, infinite where the layout is illegal or too large. [s]."""
    try:
        estimate = predict(case.workload, layout).estimate
    except BadInputError:
        return float("inf")
    return estimate.step_time_s.value if fits(estimate) else float("inf")


def _with_recompute(case: Case) -> Case:
    """The fewest eighths of the layers that must recompute for the rest to fit.

    Where not even all of them suffice, memory cannot tell, and nothing is assumed.
    """
    for eighth in range(EIGHTHS + 1):
        layout = case.layout
        if eighth:
            words = RecomputeWords(kind="full", fraction=eighth / EIGHTHS)
            layout = recomputing(layout, words)
        if fits(predict(case.workload, layout).estimate):
            break
    else:
        flag = "recomputation assumed, none: memory cannot tell"
        return replace(case, flags=(*case.flags, flag))
    share = f"full on {eighth}/{EIGHTHS} of the layers" if eighth else "none"
    flag = f"recomputation assumed, {share}"
    return replace(case, layout=layout, flags=(*case.flags, flag))


def fits(estimate: Estimate) -> bool:
    """Tell if the worst rank's memory fits, with the allocator's cache given back.

    Returns:
        True where allocated memory, context and communication fit.
    """
    memory = estimate.memory
    needed = max(stage.device - stage.fragmentation for stage in memory.stages)
    return needed <= memory.capacity_gib

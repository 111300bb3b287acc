"""Settles what a measured row leaves open, by the prediction and never by the fit.

A published run was tuned by its authors: where they do not say which micro-batch they
took, it is the fastest that fits; where they do not say what they recomputed, it is
nothing, or the least that fits.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import BadInputError
from planner.evidence.layouts import recomputing
from planner.evidence.words import RecomputeWords
from planner.predict import predict
from planner.specs.estimate import Estimate
from planner.specs.layout import PartialLayout

if TYPE_CHECKING:
    from planner.evidence.cases import Case

MICRO_BATCHES = (1, 2, 4, 8, 16, 32)
EIGHTHS = 8
"""Steps of the share of layers that may be recomputed. [1]"""


def settled(case: "Case") -> "Case":
    """A case with its open micro-batch and recomputation chosen.

    Args:
        case: The case with micro-batch 1 and no recomputation where open.

    Returns:
        The case that is priced, with a flag for each choice.
    """
    row = case.row
    given = row.layout
    if given.micro_batch is None and given.grad_accum is None:
        case = _with_micro_batch(case)
    if row.normalised.recompute.kind == "unknown":
        case = _with_recompute(case)
    return case


def _with_micro_batch(case: "Case") -> "Case":
    """The fastest micro-batch that divides and fits; 1 where none fits."""
    layout = case.layout
    each = (layout.micro_batch or 1) * (layout.grad_accum or 1)
    cuts = [size for size in MICRO_BATCHES if each % size == 0]
    options = [
        layout.model_copy(update={"micro_batch": size, "grad_accum": each // size})
        for size in cuts
    ]
    steps = {option: _step_if_fits(case, option) for option in options}
    best = min(options, key=lambda option: steps[option])
    flag = f"micro-batch assumed, {best.micro_batch}: fastest that fits"
    return replace(case, layout=best, flags=(*case.flags, flag))


def _step_if_fits(case: "Case", layout: PartialLayout) -> float:
    """Step time, infinite where the layout is illegal or too large. [s]."""
    try:
        estimate = predict(case.workload, layout).estimate
    except BadInputError:
        return float("inf")
    return estimate.step_time_s.value if fits(estimate) else float("inf")


def _with_recompute(case: "Case") -> "Case":
    """No recomputation where that fits, else full on the fewest eighths of layers."""
    if fits(predict(case.workload, case.layout).estimate):
        return replace(case, flags=(*case.flags, "recomputation assumed, none"))
    for eighth in range(1, EIGHTHS + 1):
        words = RecomputeWords(kind="full", fraction=eighth / EIGHTHS)
        layout = recomputing(case.layout, words)
        if fits(predict(case.workload, layout).estimate):
            break
    flag = f"recomputation assumed, full on {eighth}/{EIGHTHS} of the layers"
    return replace(case, layout=layout, flags=(*case.flags, flag))


def fits(estimate: Estimate) -> bool:
    """Whether the worst rank's memory holds, with the allocator's cache given back.

    Args:
        estimate: The prediction. [-]

    Returns:
        True where allocated memory, context and communication fit.
    """
    memory = estimate.memory
    needed = max(stage.device - stage.fragmentation for stage in memory.stages)
    return needed <= memory.capacity_gib

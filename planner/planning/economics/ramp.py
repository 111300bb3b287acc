"""A plan as the stretches of its run: the batch ramp, then the full batch."""

from collections.abc import Iterator
from dataclasses import replace

from planner.cost.estimate.estimate import estimate
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.planning.economics.stretches import Stretch
from planner.planning.prediction.predict import complete
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.axes import FIELDS
from planner.specs.layouts.layout import Layout, PartialLayout
from planner.specs.layouts.layout_text import recompute_kinds
from planner.specs.training import RampStep
from planner.verify.legality import rule_violations


def stretches_of(
    workload: Workload, plan: RankedPlan, *, name: str = "", phase: int = 0
) -> tuple[Stretch, ...]:
    """The run of one plan: each batch of the ramp at its own step time, then the rest.

    Args:
        workload: The job, with its tokens. [-]
        plan: Plan of the job. [-]
        name: Name of the phase, empty where there is one alone. [text]
        phase: Index of the phase. [1]

    Raises:
        BadInputError: A batch of the ramp cannot be trained under this layout.
    """
    tokens = workload.training.run_tokens
    if tokens is None:
        return ()
    ramp = workload.training.batch_ramp or ()
    rest = tokens - sum(step.tokens for step in ramp)
    whole = name or ("full batch" if ramp else "the whole run")
    return (
        *_ramped(workload, plan, ramp, name, phase),
        Stretch(workload, plan.layout, plan.estimate, rest, whole, phase),
    )


def _ramped(
    workload: Workload,
    plan: RankedPlan,
    ramp: tuple[RampStep, ...],
    name: str,
    phase: int,
) -> Iterator[Stretch]:
    """One stretch for each smaller batch."""
    for step in ramp:
        update = {"global_batch": step.global_batch, "global_batch_tokens": None}
        training = workload.training.model_copy(update={**update, "batch_ramp": None})
        smaller = replace(workload, training=training)
        layout = _at_batch(smaller, plan.layout)
        told = f"{name}, batch {step.global_batch:,}".removeprefix(", ")
        priced = estimate(smaller, layout)
        yield Stretch(smaller, layout, priced, step.tokens, told, phase)


def _at_batch(workload: Workload, layout: Layout) -> Layout:
    """The layout with fewer micro-batches, else without virtual stages."""
    batch, wave = workload.sequences, layout.micro_batch * layout.dp
    if batch % wave:
        raise BadInputError(
            f"a batch of {batch} sequences is no whole number of micro-batches for "
            f"{layout.dp} replicas of {layout.micro_batch}",
            field="training.batch_ramp",
            value=batch,
            allowed=f"multiples of {wave}, or a phase of its own under phases",
        )
    fewer = layout.model_copy(update={"grad_accum": batch // wave})
    if not rule_violations(workload, fewer):
        return fewer
    kept = {axis.name: axis.of(layout) for axis in FIELDS if axis.name != "order"}
    kept |= {"vpp": 1, "schedule": "1f1b", "grad_accum": batch // wave}
    kept |= {"offload": layout.offload, "comm_dtype": layout.stated_formats}
    if len(kinds := recompute_kinds(layout)) == 1:
        kept["recompute"] = kinds[0]
    partial = PartialLayout.model_validate(kept)
    room = replace(workload, search=workload.search.unlimited())
    try:
        return complete(room, partial)
    except BadInputError as error:
        raise BadInputError(
            f"a batch of {batch} sequences cannot be trained under the plan's degrees: "
            f"{error.message}",
            field="training.batch_ramp",
            value=batch,
            allowed="a phase of its own under phases",
        ) from error

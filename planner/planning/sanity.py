"""Doubts of a plan's rate and formats: in words, never in the ranking."""

from collections.abc import Mapping

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks.sanity import Record, floor, record_key, records
from planner.planning.reasons import CAUSE_WORDS
from planner.schedules.fold import folds
from planner.schedules.order import MOST_OPERATIONS, operation_count
from planner.specs.answer.estimate import Estimate, MemoryEstimate
from planner.specs.layouts.layout import Layout


def doubts(workload: Workload, layout: Layout, predicted: Estimate) -> tuple[str, ...]:
    """Say where a rate is above every measured run, or weights learn in 16 bits alone.

    The ceiling is the best MFU (full attention) among measured runs of equal GPU
    architecture, format and kind of training. Without such runs there is no ceiling.
    The floor is a share of the half-precision peak, for dense models that train in
    full. Recomputed forwards count, as in the floor's source.
    """
    return (
        *_too_good(workload, predicted),
        *_too_slow(workload, predicted),
        *_narrow(workload, layout.zero_stage),
        *resume_doubts(workload, predicted.memory),
    )


def resume_doubts(workload: Workload, memory: MemoryEstimate) -> tuple[str, ...]:
    """Say that a run trains and may not be resumed, and what avoids that."""
    resume, most = memory.resume, workload.search.memory_risk
    if resume is None or resume.oom_probability <= most:
        return ()
    return (resume.words,)


def _too_good(workload: Workload, predicted: Estimate) -> tuple[str, ...]:
    training, arch = workload.training, workload.gpu.arch
    key = record_key(arch=arch, precision=training.precision, method=training.method)
    record, mfu = records().get(key), predicted.mfu.full_attention
    if record is None or mfu <= record.mfu:
        return ()
    return (
        f"an MFU of {mfu:.1%} is above the best ever measured here on {arch} in "
        f"{training.precision}: {_run(record)}; expect less",
    )


def _narrow(workload: Workload, zero: int) -> tuple[str, ...]:
    """Weights in bf16 alone: with 8 bits of significand half a step is 1/512."""
    states, training = workload.framework.recipe.states, workload.training
    if training.precision != "bf16" or training.frozen or not states[zero].narrow:
        return ()
    wider = [f"{stage}" for stage, its in sorted(states.items()) if not its.narrow]
    kept = f"; ZeRO {' or '.join(wider)} keeps one" if wider else ""
    return (
        "weights are updated in bf16, without a copy in fp32, so that updates below "
        f"1/512 of a weight are lost{kept}",
    )


def _run(record: Record) -> str:
    on = f"{record.gpus:,} x {record.gpu}, {record.stack}"
    return f"{record.mfu:.1%} by {record.model} on {on} ({record.source}: {record.run})"


def _too_slow(workload: Workload, predicted: Estimate) -> tuple[str, ...]:
    experience = floor()
    routed = workload.model.expert_parameters > 0
    if routed or workload.training.frozen or predicted.hfu >= experience.share:
        return ()
    peak, known = workload.peak_flops / 1e12, experience.rate / 1e12
    return (
        f"{predicted.hfu * peak:.0f} TFLOP/s per GPU, recompute counted, is below "
        f"{experience.share * peak:.0f}, the like of {known:.0f} on an A100: there "
        "experience looks for a mistake (EleutherAI, Transformer Math 101); it loses "
        f"most to {_largest_loss(predicted)}",
    )


def _largest_loss(predicted: Estimate) -> str:
    """The cause beside the kernels that takes most, or the kernels themselves."""
    causes = predicted.causes_s
    step = predicted.step_time_s.value
    lost = {name: time for name, time in causes.items() if name != "compute"}
    worst = max(lost, key=lambda name: lost[name])
    kernels = 1 - sum(lost.values()) / step
    if kernels > 1 - predicted.hfu:
        return f"slow kernels ({kernels:.1%} of the step)"
    return f"{CAUSE_WORDS[worst]} ({lost[worst] / step:.1%} of the step)"


def refuse_long(workload: Workload, degrees: Mapping[str, object]) -> None:
    """Refuse a step that is too long to simulate and does not repeat itself.

    Raises:
        BadInputError: Says how long the step is, and how long it may be.
    """
    schedule, zero = str(degrees["schedule"]), degrees["zero_stage"]
    pp, vpp = int(str(degrees["pp"])), int(str(degrees["vpp"]))
    micro_batches = int(str(degrees["grad_accum"]))
    grouped = workload.framework.recipe.gradients_reduced_per_group and zero == 2
    every = pp if grouped else None
    if not folds(schedule, pp, vpp, micro_batches, every):
        count = operation_count(pp, vpp, micro_batches)
        raise BadInputError(
            f"a step of {micro_batches:,} micro-batches on {pp * vpp} stages under "
            f"{schedule} is {count:,} forwards and backwards, and no shorter step "
            "stands for it",
            field="layout.grad_accum",
            value=micro_batches,
            allowed=f"at most {MOST_OPERATIONS:,} of them: a larger micro_batch, more "
            "data ranks, fewer stages, another schedule than gpipe, or a smaller "
            "training.global_batch",
        )

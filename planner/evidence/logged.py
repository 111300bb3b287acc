"""A training log beside the prediction of the job that wrote it."""

from pathlib import Path

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.evidence.logs import Log
from planner.evidence.outcome import Outcome
from planner.predict import predict
from planner.specs.estimate import Interval, MemoryEstimate
from planner.specs.layout import Layout, PartialLayout

_NAMED = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp")


def logged_outcome(
    workload: Workload, given: PartialLayout, log: Log, *, file: Path
) -> Outcome:
    """Price a job under a layout, and put what its log says beside it.

    Args:
        workload: The job. [-]
        given: The layout that it ran under; what is absent is filled in. [-]
        log: What the log says. [-]
        file: Path of the log. [path]

    Returns:
        One outcome, named after the log. [-]

    Raises:
        BadInputError: The layout is not legal, or the log states no time.
    """
    training = workload.training
    measured = log.step_time(
        global_batch=training.sequences, seq_len=training.seq_len, gpus=workload.gpus
    )
    if measured is None:
        raise BadInputError("the log states no step time or speed", file=str(file))
    plan = predict(workload, given)
    step, memory = plan.estimate.step_time_s, plan.estimate.memory
    counted = _by_counter(memory, log.memory_counter)
    return Outcome(
        id=file.stem,
        file=str(file),
        source=file.stem,
        status="ok",
        model=workload.model.name,
        gpu=workload.gpu.name,
        gpus=workload.gpus,
        framework=workload.framework.name,
        stack=workload.framework.profile.name,
        moe=workload.model.active_parameters < workload.model.parameters,
        seq_len=training.seq_len,
        precision=training.precision,
        layout=_short(plan.layout),
        predicted_step_s=step.value,
        step_low_s=step.low,
        step_high_s=step.high,
        predicted_memory_gib=counted.value,
        memory_low_gib=counted.low,
        memory_high_gib=counted.high,
        verdict=memory.verdict,
        measured_step_s=measured,
        measured_memory_gib=log.memory_gib,
        memory_counter=log.memory_counter,
    )


def _by_counter(memory: MemoryEstimate, counter: str) -> Interval:
    """Peak memory as the log counts it; reserved has the bounds of allocated."""
    allocated = memory.peak_allocated_gib
    if counter != "reserved":
        return allocated
    ratio = memory.peak_reserved_gib / allocated.value
    return Interval(
        value=memory.peak_reserved_gib,
        low=allocated.low * ratio,
        high=allocated.high * ratio,
    )


def _short(layout: Layout) -> str:
    """Degrees in short, as `tp8 pp4 dp2 mb1`."""
    degrees = ((name, getattr(layout, name)) for name in _NAMED)
    parts = [f"{name}{degree}" for name, degree in degrees if degree > 1]
    return " ".join([*parts, f"mb{layout.micro_batch}"])

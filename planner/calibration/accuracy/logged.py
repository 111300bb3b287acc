"""A training log beside the prediction of the job that wrote it."""

from pathlib import Path

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import peak_interval
from planner.calibration.rows.logs import Log
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.planning.prediction.predict import predict
from planner.specs.layouts.layout import PartialLayout
from planner.specs.layouts.layout_text import packed_layout


def logged_outcome(
    workload: Workload, given: PartialLayout, log: Log, *, file: Path
) -> Outcome:
    """Price a job under a layout, and put what its log says beside it.

    Args:
        workload: The job. [-]
        given: The layout that it ran under; what is absent is filled in. [-]
        log: Readings of the log. [-]
        file: Path of the log. [path]

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
    band = workload.uncertainty.counted(log.memory_counter)
    peak = peak_interval(plan.estimate, log.memory_counter, "max", band)
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
        moe=workload.model.expert_parameters > 0,
        seq_len=training.seq_len,
        precision=training.precision,
        layout=packed_layout(plan.layout),
        predicted_step_s=step.value,
        step_low_s=step.low,
        step_high_s=step.high,
        predicted_memory_gib=peak.value,
        memory_low_gib=peak.low,
        memory_high_gib=peak.high,
        verdict=memory.verdict,
        measured_step_s=measured,
        measured_memory_gib=log.memory_gib,
        memory_counter=log.memory_counter,
    )

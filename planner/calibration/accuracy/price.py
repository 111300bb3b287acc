"""Prices measured rows; a row that cannot be priced says why and stops nothing."""

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.calibration.rows.rows import InvalidRow, Row
from planner.calibration.rows.sweep import sweep_of
from planner.calibration.rows.unsupported import UnsupportedError
from planner.calibration.rows.vocabulary import Counter, Ranks
from planner.cost.estimate.estimate import flops_per_token
from planner.cost.pricing import Pricing
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.planning.prediction.predict import predict
from planner.planning.ties import Contender
from planner.specs.answer.estimate import Estimate, Interval, StageMemory
from planner.specs.answer.result import RankedPlan
from planner.specs.answer.uncertainty import Band
from planner.specs.layouts.layout_text import packed_layout

UNREAL_MFU = 1.5
"""Utilisation that no convention of counting FLOPs explains. [1]"""


def price_row(
    row: Row, catalog: Catalog, own: CalibrationFile | None = None
) -> Outcome:
    """Price a row: its prediction beside its measurement.

    Args:
        row: The measured row. [-]
        catalog: Files of facts. [-]
        own: The user's calibration, or None. [-]
    """
    try:
        case = case_of(row, catalog).under(own)
        if why := impossible(case):
            place = f"{row.file}: {row.id}: {why}"
            return _unpriced(row, place).model_copy(update={"status": "invalid"})
        return price_case(case)
    except UnsupportedError as error:
        return _unpriced(row, str(error))
    except Exception as error:  # noqa: BLE001
        # A fault of ours in one row of a thousand must not lose the others.
        return _unpriced(row, f"{type(error).__name__}: {error}")


def impossible(case: Case) -> str:
    """Reason why a measured step cannot belong to the row's job.

    Returns:
        Field and value, empty where the step is possible or the row suspect. [text]
    """
    mfu, measured = _measured_mfu(case), case.measured
    if mfu is None or mfu <= UNREAL_MFU or not case.row.counted:
        return ""
    return (
        f"measured.{measured.basis}: a step of {measured.step_s:.3g} s asks {mfu:.2g} "
        f"times the peak of its GPUs; allowed: up to {UNREAL_MFU:g} times"
    )


def price_case(case: Case) -> Outcome:
    """Price a case whose job and layout are known.

    Returns:
        Prediction beside measurement; unsupported where no such layout is legal.
    """
    try:
        plan = predict(case.workload, case.layout)
    except Exception as error:  # noqa: BLE001
        return _unpriced(case.row, f"{error}")
    estimate, measured = plan.estimate, case.measured
    band = case.workload.uncertainty.counted(measured.counter)
    peak = peak_interval(estimate, measured.counter, measured.ranks, band)
    return described(case).model_copy(
        update={
            "predicted_step_s": estimate.step_time_s.value,
            "step_low_s": estimate.step_time_s.low,
            "step_high_s": estimate.step_time_s.high,
            "causes_s": estimate.time_breakdown_s,
            "complexity": _contender(case, plan).complexity,
            "waiting": estimate.time_breakdown_s.other / estimate.step_time_s.value,
            "predicted_memory_gib": peak.value,
            "memory_low_gib": peak.low,
            "memory_high_gib": peak.high,
            "predicted_device_gib": needed_memory(
                estimate, case.workload.framework.profile.packing
            ),
            "capacity_gib": estimate.memory.capacity_gib,
            "verdict": estimate.memory.verdict,
        }
    )


def _contender(case: Case, plan: RankedPlan) -> Contender:
    priced = Pricing.of(case.workload, plan.layout)
    return Contender(priced, plan.layout, plan.estimate)


def described(case: Case) -> Outcome:
    """A case without its prediction."""
    row, measured, workload = case.row, case.measured, case.workload
    return Outcome(
        id=row.id,
        file=row.file,
        source=row.source_key,
        status="ok",
        counted=row.counted,
        note="; ".join([*_remarks(row), *case.flags]),
        model=workload.model.name,
        gpu=workload.gpu.name,
        gpus=row.hardware.gpus,
        framework=workload.framework.name,
        stack=case.stack,
        moe=workload.model.expert_parameters > 0,
        seq_len=row.job.seq_len,
        precision=workload.training.precision,
        method=workload.training.method,
        split_group=row.group,
        sweep=sweep_of(row),
        layout=packed_layout(case.layout),
        measured_step_s=measured.step_s,
        measured_mfu=_measured_mfu(case),
        measured_memory_gib=measured.memory_gib,
        memory_counter=measured.counter,
        oom=measured.oom,
    )


def _remarks(row: Row) -> list[str]:
    """Remarks on a row: why it is suspect, and its keys that nothing reads."""
    suspect = [] if row.counted else [row.check]
    unread = [f"not read: {', '.join(row.unread)}"] if row.unread else []
    return suspect + unread


def _measured_mfu(case: Case) -> float | None:
    """``tokens x FLOPs per token / (step x GPUs x peak)``, full attention. [1]."""
    workload, step = case.workload, case.measured.step_s
    if not step:
        return None
    tokens = workload.sequences * workload.training.seq_len
    work = tokens * flops_per_token(workload, "full")
    return work / (step * workload.gpus * workload.peak_flops)


def invalid_outcome(row: InvalidRow) -> Outcome:
    """A row that could not be read, as an outcome."""
    return Outcome(
        id=row.id,
        file=row.file,
        source=row.file.rsplit("/", 1)[-1].rsplit(".", 1)[0],
        status="invalid",
        reason=row.reason,
        counted=False,
    )


def peak_memory(estimate: Estimate, counter: Counter, ranks: Ranks) -> float:
    """Predicted peak by a row's own counter and rank.

    `active` counts as allocated, an unknown counter as reserved; the first and last
    rank are those of the pipeline, an unknown rank is the worst.

    Returns:
        Peak memory. [GiB]
    """
    return _counted(fullest(estimate, counter, ranks), counter)


def peak_interval(
    estimate: Estimate, counter: Counter, ranks: Ranks, band: Band
) -> Interval:
    """Predicted peak by a row's own counter, with its band beyond the states.

    Returns:
        Peak memory. [GiB]
    """
    stage = fullest(estimate, counter, ranks)
    return Interval.around(_counted(stage, counter), band, known=stage.counted)


def fullest(estimate: Estimate, counter: Counter, ranks: Ranks) -> StageMemory:
    """Rank that a measured peak is compared with."""
    stages = estimate.memory.stages
    chosen = {"first": stages[:1], "last": stages[-1:]}.get(ranks, stages)
    return max(chosen, key=lambda stage: _counted(stage, counter))


def needed_memory(estimate: Estimate, packing: float) -> float:
    """Memory that must fit on the fullest rank: ``A / phi_0`` and what lies beside.

    Returns:
        Memory. [GiB]
    """
    return max(
        stage.allocated / packing + stage.communication + stage.context
        for stage in estimate.memory.stages
    )


def _counted(stage: StageMemory, counter: Counter) -> float:
    if counter in {"allocated", "active"}:
        return stage.allocated
    if counter == "device":
        return stage.device
    return stage.allocated + stage.fragmentation


def _unpriced(row: Row, reason: str) -> Outcome:
    return Outcome(
        id=row.id,
        file=row.file,
        source=row.source_key,
        status="unsupported",
        reason=" ".join(reason.split()),
        counted=row.counted,
        note="; ".join(_remarks(row)),
        model=row.model.name,
        gpu=row.hardware.gpu,
        gpus=row.hardware.gpus,
        moe=row.model.moe is not None,
        seq_len=row.job.seq_len,
        precision=row.job.precision,
        split_group=row.group,
        sweep=sweep_of(row),
        measured_step_s=row.measured.step_time_s,
        oom=row.measured.oom,
    )

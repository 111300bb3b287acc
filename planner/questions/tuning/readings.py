"""Logs of short runs: the step that each states, and what tells a foreign log."""

import re
from dataclasses import dataclass
from pathlib import Path

from planner.calibration.accuracy.logged_job import planned_row
from planner.calibration.fitting.user_fit import FARTHEST
from planner.calibration.rows.logs import Log, parse_log, read_log
from planner.calibration.rows.skeleton import Block, skeleton
from planner.errors import BadInputError
from planner.launch import PlanFile
from planner.specs.reading.read import user_text

LOG = "check.log"
"""Log that check.sh of a run writes. [text]"""
WRITES = {
    "megatron": ("Megatron-LM", "Megatron-DeepSpeed"),
    "torchtitan": ("torchtitan",),
    "deepspeed": ("DeepSpeed", "Megatron-DeepSpeed", "Hugging Face Trainer"),
    "accelerate": ("Hugging Face Trainer", "DeepSpeed"),
}
"""Framework of a plan to the programs whose logs it may leave. [text]"""
SIZES = {
    "model": ("layers", "hidden", "heads"),
    "hardware": ("gpus",),
    "job": ("seq_len", "global_batch"),
    "layout": ("tp", "pp", "cp", "ep", "dp", "micro_batch"),
}
"""Numbers by which a log that states its settings is known. [text]"""
SHORT = "ran out of memory"
"""Failure of a run for want of memory. [text]"""
_NO_MEMORY = re.compile(r"out of memory|OutOfMemoryError", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """The outcome of a short run.

    Attributes:
        step_s: Median step; None where the run failed. [s]
        memory_gib: Peak that the log states, or None. [GiB]
        counter: Counter of that peak. [text]
        row: The run as a measured row; None where it failed. [-]
        failure: Reason why it failed; empty where it did not. [text]
    """

    step_s: float | None = None
    memory_gib: float | None = None
    counter: str = ""
    row: Block | None = None
    failure: str = ""


def reading(found: PlanFile, name: str, log_file: Path) -> Reading:
    """Read the log of a run.

    Args:
        found: The run's plan. [-]
        name: Name of the run. [text]
        log_file: Its log. [path]

    Raises:
        BadInputError: The log is of another job or layout, or cannot be read.
    """
    text = user_text(log_file)
    if parse_log(text) is None:
        short = _NO_MEMORY.search(text)
        why = SHORT if short else "no line of its log states a step"
        return Reading(failure=why)
    log = read_log(log_file)
    row = planned_row(
        f"{found.brief.job}-{name}",
        found.plan.spec,
        found.pricing,
        found.plan.layout,
        log,
    )
    step_s = _step(found, log, log_file)
    _refuse_foreign(found, log, row, step_s, log_file)
    return Reading(step_s, log.memory_gib, log.memory_counter, row)


def _step(found: PlanFile, log: Log, log_file: Path) -> float:
    training = found.pricing.training
    step_s = log.step_time(
        global_batch=training.sequences,
        seq_len=training.seq_len,
        gpus=found.plan.layout.gpus,
    )
    if step_s is None:
        raise BadInputError("states no step time or speed", file=str(log_file))
    return step_s


def _refuse_foreign(
    found: PlanFile, log: Log, row: Block, step_s: float, log_file: Path
) -> None:
    """Refuse the log of another job, by program, settings and step."""
    writers = WRITES.get(found.spec.framework, (log.framework,))
    if log.framework not in writers:
        raise _foreign(log_file, "program", log.framework, " or ".join(writers))
    said = skeleton(log, "")
    for block, names in SIZES.items():
        for name in names:
            theirs, ours = _value(said, block, name), _value(row, block, name)
            if theirs is not None and ours is not None and theirs != ours:
                raise _foreign(log_file, f"{block}.{name}", theirs, ours)
    predicted = found.plan.estimate.step_time_s.value
    if not 1 / FARTHEST <= step_s / predicted <= FARTHEST:
        near = f"{predicted / FARTHEST:.3g} to {predicted * FARTHEST:.3g} s"
        raise _foreign(log_file, "step", f"{step_s:.4g} s", near)


def _value(blocks: Block, block: str, name: str) -> object:
    fields = blocks.get(block)
    return fields.get(name) if isinstance(fields, dict) else None


def _foreign(file: Path, field: str, value: object, ours: object) -> BadInputError:
    return BadInputError(
        "is the log of another job or layout than plan.json beside it",
        file=str(file),
        field=field,
        value=value,
        allowed=str(ours),
    )

"""Outcome of one measured row: its prediction beside its measurement."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from planner.specs.answer.estimate import TimeBreakdown

Status = Literal["ok", "unsupported", "invalid"]


class Outcome(BaseModel):
    """One measured row with planner's prediction.

    A row that could not be priced has a status other than `ok` and a reason in one
    line; a row whose check is not ok is priced but not counted.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    """Unique name of the row. [text]"""
    file: str
    """Path of the row's file. [path]"""
    source: str
    """Stem of the row's file. [text]"""
    status: Status
    reason: str = ""
    """Reason why the row is unsupported or invalid, one line. [text]"""
    counted: bool = True
    """The row's check is ok: the row belongs in summaries."""
    note: str = ""
    """Reason why the row is suspect, and assumptions of the price. [text]"""
    model: str = ""
    gpu: str = ""
    """Name in the catalogue. [text]"""
    gpus: int = 0
    """Ranks of the run. [1]"""
    framework: str = ""
    """Room of the framework that priced the row. [text]"""
    stack: str = ""
    """Named software stack that priced the row. [text]"""
    moe: bool = False
    seq_len: int = 0
    """Tokens in one sequence. [token]"""
    precision: str = ""
    method: str = ""
    """full, lora or qlora. [text]"""
    split_group: str = ""
    """Group of near-duplicates, which cross-validation keeps on one side. [text]"""
    sweep: str = ""
    """Rows of one key differ in nothing but their layout. [text]"""
    layout: str = ""
    """Degrees in short, as `tp8 pp4 dp2 mb1`. [text]"""
    predicted_step_s: float | None = None
    """Step time. [s]"""
    step_low_s: float | None = None
    """Lower bound of the 90 % interval. [s]"""
    step_high_s: float | None = None
    """Upper bound of the 90 % interval. [s]"""
    causes_s: TimeBreakdown | None = None
    """The predicted step by cause. [s]"""
    complexity: tuple[int, ...] = ()
    """Axes of the layout, then its distances from the framework's defaults. [1]"""
    waiting: float = 0.0
    """Share of the predicted step that the GPU waits for its host. [1]"""
    predicted_memory_gib: float | None = None
    """Peak memory by the row's own counter and rank. [GiB]"""
    memory_low_gib: float | None = None
    """Lower bound of the 90 % interval. [GiB]"""
    memory_high_gib: float | None = None
    """Upper bound of the 90 % interval. [GiB]"""
    predicted_device_gib: float | None = None
    """Memory that must fit on the fullest rank, caches given back: decides the
    verdict. [GiB]"""
    capacity_gib: float | None = None
    """Memory of the GPU. [GiB]"""
    verdict: str = ""
    """fits, at-risk or oom. [text]"""
    measured_step_s: float | None = None
    """Step time. [s]"""
    measured_mfu: float | None = None
    """Model FLOPs at the measured step over the half-precision peak, full attention.
    [1]"""
    measured_memory_gib: float | None = None
    """Peak memory by the row's counter. [GiB]"""
    memory_counter: str = ""
    """allocated, active, reserved, device or unknown. [text]"""
    oom: bool = False
    """The run did not fit."""

    planned_step_s: float | None = None
    """Step of the fastest layout of the row's job, the row's own among them. [s]"""
    planned_layout: str = ""
    """Degrees of that layout in short. [text]"""
    planned_device_gib: float | None = None
    """Device memory of that layout, where it is not the row's own. [GiB]"""
    planned_status: str = ""
    """Status of the search, or the reason why there was none. [text]"""

    @property
    def claimed_gain(self) -> float | None:
        """Gain of the plan, ``1 - planned / predicted``; None without a search. [1]."""
        if self.planned_step_s is None or self.predicted_step_s is None:
            return None
        return 1 - self.planned_step_s / self.predicted_step_s

    @property
    def step_error(self) -> float | None:
        """Relative error of the step time, ``predicted / measured - 1``. [1]."""
        return _relative(self.predicted_step_s, self.measured_step_s)

    @property
    def memory_error(self) -> float | None:
        """Relative error of the peak memory, ``predicted / measured - 1``. [1]."""
        return _relative(self.predicted_memory_gib, self.measured_memory_gib)


def _relative(predicted: float | None, measured: float | None) -> float | None:
    if predicted is None or not measured:
        return None
    return predicted / measured - 1

"""Prediction for one layout: time, memory, and how far to trust them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.uncertainty import Band
from planner.specs.lengths import Padding

WAITING = 1.05
"""Rows of the slowest rank over the mean from which waiting is worth a word. [1]"""
GAIN = 1.01
"""Gain of packing from which it is worth a word. [1]"""
Verdict = Literal["fits", "at-risk", "oom"]
"""Verdict of an interval on a capacity; see :meth:`Interval.verdict`."""
STEP = "optimizer step"
RESUME = "resume load"
"""Moment of a run at which all of a parameter's states are there."""


class Interval(BaseModel):
    """A value with the bounds that hold 90 % of measured reality."""

    model_config = ConfigDict(frozen=True)

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, band: Band, known: float = 0.0) -> "Interval":
        """Spread a value by a band."""
        low, high = (known + (value - known) * scale for scale in (band.low, band.high))
        return cls(value=value, low=low, high=high)

    def at_least(self, known: float) -> "Interval":
        """Raise the lower bound to what is counted, not estimated."""
        low = min(max(self.low, known), self.value)
        return self.model_copy(update={"low": low})

    def verdict(self, capacity: float) -> Verdict:
        """Verdict on a capacity, where the interval is the memory that is needed.

        Returns:
            ``oom`` where even the lower bound is too much, ``at-risk`` where the
            upper bound is, else ``fits``.
        """
        if self.low > capacity:
            return "oom"
        return "at-risk" if self.high > capacity else "fits"


class ByConvention(BaseModel):
    """One quantity under both ways to count attention FLOPs."""

    model_config = ConfigDict(frozen=True)

    full_attention: float
    causal_attention: float


class TimeBreakdown(BaseModel):
    """Exposed time of the critical path by cause; adds up to the step. [s]."""

    model_config = ConfigDict(frozen=True)

    compute: float = 0.0
    tp_comm: float = 0.0
    cp_comm: float = 0.0
    ep_comm: float = 0.0
    pp_comm: float = 0.0
    dp_comm: float = 0.0
    bubble: float = 0.0
    recompute: float = 0.0
    optimizer: float = 0.0
    straggler: float = 0.0
    other: float = 0.0


WAIT_WORDS = {
    "launches": "waits for kernel launches",
    "expert_launches": "waits for launches of experts",
    "offload_copies": "copies of offloaded activations",
    "mask_copies": "copies of attention masks",
    "step_overhead": "fixed host work of a step",
}
"""Part of `other` to its name in answers: all are waits for the host. [text]"""


class MomentMemory(BaseModel):
    """Memory of one pipeline rank at one moment, by category. [GiB].

    The categories add up to what the device reports.
    """

    model_config = ConfigDict(frozen=True)

    moment: str
    weights: float
    gradients: float
    optimizer: float
    activations: float
    transient: float
    communication: float
    fragmentation: float
    context: float

    @property
    def states(self) -> float:
        """Weights, gradients and optimizer. [GiB]."""
        return self.weights + self.gradients + self.optimizer

    @property
    def allocated(self) -> float:
        """Memory that ``torch.cuda.max_memory_allocated`` would report. [GiB]."""
        return self.states + self.activations + self.transient

    @property
    def reserved(self) -> float:
        """Memory that ``torch.cuda.max_memory_reserved`` would report. [GiB]."""
        return self.allocated + self.fragmentation

    @property
    def device(self) -> float:
        """Memory that ``nvidia-smi`` would report: all categories together. [GiB]."""
        return self.reserved + self.communication + self.context


class StageMemory(MomentMemory):
    """Memory of one pipeline rank at its fullest moment, and at all others. [GiB].

    The resume from a checkpoint is the fullest only where a job's limit counts it.
    """

    stage: int
    moments: tuple[MomentMemory, ...] = ()
    """Every moment in the order of a run, the fullest among them."""

    def at(self, name: str) -> "StageMemory":
        """The rank at a moment of its own.

        Returns:
            Memory at that moment; at the fullest where there is none. [GiB]
        """
        found = [moment for moment in self.moments if moment.moment == name]
        return self.model_copy(update=dict(found[0])) if found else self

    @property
    def counted(self) -> float:
        """Weights, gradients and optimizer at an optimizer's step. [GiB].

        Parameters times bytes, without anything that is estimated.
        """
        steps = [moment for moment in self.moments if moment.moment == STEP]
        return max((moment.states for moment in steps), default=0.0)


class HostMemory(BaseModel):
    """Host memory that the fullest node needs for its GPUs, and has. [GiB]."""

    model_config = ConfigDict(frozen=True)

    needed_gib: float
    """States, activations and buffers in the node's memory."""
    available_gib: float | None
    """The node's memory; none where it is not known."""
    nvme_needed_gib: float = 0.0
    """States on the node's local drives."""
    nvme_available_gib: float | None = None
    """Room on the drives; none where it is not known."""

    @property
    def is_enough(self) -> bool:
        """True where neither memory nor drives are known to be too small."""
        memory = self.available_gib is None or self.needed_gib <= self.available_gib
        room = self.nvme_available_gib
        return memory and (room is None or self.nvme_needed_gib <= room)


class ResumeEstimate(BaseModel):
    """Peak memory of a resume that needs more than training, and whether it fits."""

    model_config = ConfigDict(frozen=True)

    moment: str
    peak_device_gib: Interval
    oom_probability: float
    """Probability that the resume does not fit. [1]"""
    verdict: Verdict
    advice: str = ""
    """Releases and options that load with less; empty where none is known. [text]"""

    @property
    def words(self) -> str:
        """Need and risk of the resume, and what avoids it. [text]."""
        said = (
            f"a resume from a checkpoint needs {self.peak_device_gib.value:.1f} GiB "
            f"({self.moment}), more than training, and runs out of memory with "
            f"{self.oom_probability:.0%}"
        )
        return f"{said}; {self.advice}" if self.advice else said


class MemoryEstimate(BaseModel):
    """Peak memory over all ranks, and whether it fits. [GiB]."""

    model_config = ConfigDict(frozen=True)

    peak_allocated_gib: Interval
    peak_reserved_gib: float
    peak_device_gib: Interval
    capacity_gib: float
    oom_probability: float | None = None
    """Probability that the run does not fit; none in older answers. [1]"""
    verdict: Verdict
    stages: tuple[StageMemory, ...]
    host: HostMemory | None = None
    """Memory of the host; none where nothing is kept there."""
    resume: ResumeEstimate | None = Field(
        default=None, exclude_if=lambda found: found is None
    )
    """The resume from a checkpoint; absent where it needs no more than training."""


class PaddingEstimate(BaseModel):
    """Tokens of a plan's rows that are no text, and what packing would gain."""

    model_config = ConfigDict(frozen=True)

    rows: Padding
    """Filling of rows: longest, max or packed. [text]"""
    text_tokens: float
    """Mean length of a text, cut at the sequence length. [token]"""
    row_tokens: float
    """Mean tokens of a row, padding included. [token]"""
    slowest_row_tokens: float
    """Mean tokens of the rows of the rank that the others wait for. [token]"""
    share: float
    """Share of the rows' tokens that are padding. [1]"""
    useful_tokens_per_s: float
    """Tokens of texts that all GPUs train on, without padding. [token/s]"""
    packed_speedup: float
    """Rate of the same layout with packed texts over this one. [1]"""

    @property
    def words(self) -> str:
        """The share of padding, and the gain of packing where there is one. [text]."""
        if self.rows == "packed":
            return "texts are packed, without padding"
        said = f"{self.share:.0%} of the tokens are padding"
        if self.slowest_row_tokens > WAITING * self.row_tokens:
            longer = self.slowest_row_tokens / self.row_tokens
            said += f", and ranks wait for rows that are {longer:.2g} x as long"
        if self.packed_speedup < GAIN:
            return said
        return f"{said}: packing would be {self.packed_speedup:.3g} x faster"


class Estimate(BaseModel):
    """Everything predicted of one layout."""

    model_config = ConfigDict(frozen=True)

    step_time_s: Interval
    tokens_per_s_per_gpu: float
    tokens_per_s: float
    model_tflops_per_gpu: ByConvention
    mfu: ByConvention
    hfu: float
    time_breakdown_s: TimeBreakdown
    other_by_cause_s: dict[str, float] = Field(
        default={}, exclude_if=lambda found: not found
    )
    """Parts of `other` that take time, which add up to it; in older answers none. [s]
    """
    kernel_share: float = 1.0
    """Share of the time of all GPUs in kernels of forward and backward; in the rest
    they wait, for each other or for memory. 1 in older answers. [1]"""
    memory: MemoryEstimate
    padding: PaddingEstimate | None = Field(
        default=None, exclude_if=lambda found: found is None
    )
    """Padding, and what packing would gain; absent where lengths are not given."""
    stack: dict[str, object]
    assumptions: tuple[str, ...]
    time_to_train_s: float | None = None
    cost_usd: float | None = None
    energy_mwh: float | None = None

    @property
    def causes_s(self) -> dict[str, float]:
        """Time by cause with the parts of `other` in its place. [s]."""
        times: dict[str, float] = self.time_breakdown_s.model_dump()
        if self.other_by_cause_s:
            del times["other"]
        return times | self.other_by_cause_s

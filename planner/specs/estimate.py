"""What planner says of one layout: time, memory, and how far to trust them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from planner.specs.uncertainty import Band

Verdict = Literal["fits", "at-risk", "oom"]


class Interval(BaseModel):
    """A value with the bounds that hold 90 % of measured reality."""

    model_config = ConfigDict(frozen=True)

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, band: Band) -> "Interval":
        """Spread a value by a band.

        Args:
            value: The prediction, any unit.
            band: Bounds over the value. [1]

        Returns:
            The interval, in the unit of the value.
        """
        return cls(value=value, low=value * band.low, high=value * band.high)


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


class StageMemory(BaseModel):
    """Memory of one pipeline rank at its peak, by category. [GiB]."""

    model_config = ConfigDict(frozen=True)

    stage: int
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
    def allocated(self) -> float:
        """What ``torch.cuda.max_memory_allocated`` would say. [GiB]."""
        states = self.weights + self.gradients + self.optimizer
        return states + self.activations + self.transient

    @property
    def device(self) -> float:
        """What ``nvidia-smi`` would say: the sum of all categories. [GiB]."""
        return self.allocated + self.communication + self.fragmentation + self.context


class HostMemory(BaseModel):
    """What the fullest node keeps for its GPUs, beside what it has. [GiB]."""

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
        """Whether nothing that is known falls short."""
        memory = self.available_gib is None or self.needed_gib <= self.available_gib
        room = self.nvme_available_gib
        return memory and (room is None or self.nvme_needed_gib <= room)


class MemoryEstimate(BaseModel):
    """Peak memory over all ranks, and whether it fits. [GiB]."""

    model_config = ConfigDict(frozen=True)

    peak_allocated_gib: Interval
    peak_reserved_gib: float
    peak_device_gib: Interval
    capacity_gib: float
    verdict: Verdict
    stages: tuple[StageMemory, ...]
    host: HostMemory | None = None
    """Of the host; none where nothing is kept there."""


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
    memory: MemoryEstimate
    stack: dict[str, object]
    assumptions: tuple[str, ...]
    time_to_train_s: float | None = None
    cost_usd: float | None = None
    energy_mwh: float | None = None

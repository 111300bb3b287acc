"""Answer of `planner memory`: schema ``planner/memory@1``."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.estimate import Interval, MemoryEstimate, Verdict
from planner.specs.layouts.layout import Layout


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/memory@1"] = Field(
        default="planner/memory@1", alias="schema"
    )
    gpus: int
    """GPUs that the memory is of. [1]"""
    gpus_needed: int | None
    """Fewest GPUs of this type that hold the job; null where none found. [1]"""
    nodes_needed: int | None = None
    """Nodes of those GPUs: whole nodes, unless the cluster is partial. [1]"""
    gpus_per_node: int
    """GPUs of a whole node. [1]"""
    positions: int | None = None
    """Longest sequence that the model's source states, where it does. [token]"""
    stack: dict[str, object] = {}
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Checkpoint(BaseModel):
    """One checkpoint: what a run writes so that it can go on. [GiB]."""

    model_config = ConfigDict(frozen=True)

    weights_gib: float
    """Parameters as they are kept, master copy apart."""
    optimizer_gib: float
    """Master copy and moments."""
    total_gib: float
    per_rank_gib: float
    """Size of the largest part that one rank writes."""
    bytes_per_parameter: float
    """Total over the parameters that are saved. [B]"""
    adapters_only: bool


class LargestJob(BaseModel):
    """The most that fits with everything else as given; 0 where nothing does."""

    model_config = ConfigDict(frozen=True)

    micro_batch: int
    """Sequences of a micro-batch; the micro-batches of a step stay. [sequence]"""
    seq_len: int
    """Tokens of a sequence. [token]"""


class MethodAnswer(BaseModel):
    """Memory of a job under one method of training."""

    model_config = ConfigDict(frozen=True)

    method: str
    optimizer: str
    offloaded: bool = False
    """True where the optimizer's states lie in the host's memory."""
    verdict: Verdict | None = None
    """Verdict on the given layout; null where the method cannot be priced here."""
    device_gib: float | None = None
    oom_probability: float | None = None
    """Probability that it does not fit. [1]"""
    gpus: int = 0
    """GPUs that verdict and device memory are of. [1]"""
    largest_model: str | None = None
    """Largest preset that fits these GPUs; null where none does."""
    gpus_needed: int | None = None
    nodes_needed: int | None = None
    layout: Layout | None = None
    """The layout that needs the fewest GPUs."""
    is_late: bool = False
    """True where the time limit came before the fewest GPUs were found."""
    reason: str = ""
    """Reason why an answer is missing. [text]"""


class FittingChange(BaseModel):
    """A change of a job after which it fits, or is less at risk."""

    model_config = ConfigDict(frozen=True)

    change: str
    """The change, in words."""
    options: tuple[str, ...]
    """Options of the command line that make the change."""
    verdict: Verdict
    device_gib: float
    oom_probability: float | None = None
    """Probability that it does not fit. [1]"""
    gpus: int
    """GPUs that the changed job takes. [1]"""


class TrainingMemory(_Answer):
    """Memory of a training job, and the most that fits."""

    memory: MemoryEstimate
    layout: Layout
    chosen: bool
    """True where planner chose the most frugal layout; else the layout was given."""
    largest: LargestJob
    methods: tuple[MethodAnswer, ...]
    cheapest_change: FittingChange | None = None
    """The least change after which the job fits; null where it does, or none does."""
    checkpoint: Checkpoint


class ServingMemory(BaseModel):
    """Memory of one GPU that serves a model, at its fullest moment. [GiB]."""

    model_config = ConfigDict(frozen=True)

    stage: int = 0
    moment: str
    weights: float
    kv_cache: float
    activations: float
    communication: float
    context: float

    @property
    def counted(self) -> float:
        """Weights and cache: parameters and tokens times bytes. [GiB]."""
        return self.weights + self.kv_cache

    @property
    def allocated(self) -> float:
        """Memory that ``torch.cuda.max_memory_allocated`` would report. [GiB]."""
        return self.counted + self.activations

    @property
    def device(self) -> float:
        """Memory that ``nvidia-smi`` would report: all categories together. [GiB]."""
        return self.allocated + self.communication + self.context


class ServingEstimate(BaseModel):
    """Peak memory of a GPU that serves a model, and whether it fits. [GiB]."""

    model_config = ConfigDict(frozen=True)

    peak_allocated_gib: Interval
    peak_reserved_gib: float
    peak_device_gib: Interval
    capacity_gib: float
    oom_probability: float | None = None
    """Probability that it does not fit; none in older answers. [1]"""
    verdict: Verdict
    stages: tuple[ServingMemory, ...]
    """One entry: every GPU of the group holds as much."""
    moments: dict[str, float]
    """Device memory at each moment. [GiB]"""


class LargestRequest(BaseModel):
    """The most that fits with everything else as given; 0 where nothing does."""

    model_config = ConfigDict(frozen=True)

    batch: int
    """Sequences at the given context. [sequence]"""
    context: int
    """Tokens of each sequence at the given batch. [token]"""


class InferenceMemory(_Answer):
    """Memory of an inference job, and the most that fits."""

    memory: ServingEstimate
    largest: LargestRequest
    cache_bytes_per_token: float
    """Cache per token of one sequence on one GPU, before any window is full. [B]"""

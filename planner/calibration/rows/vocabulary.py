"""The fixed words of a measured row: its free text in closed vocabularies."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.reading.numbers import PositiveInt

Counter = Literal["allocated", "active", "reserved", "device", "unknown"]
Ranks = Literal["max", "first", "last", "unknown"]
RecomputeWord = Literal["none", "full", "selective", "unknown"]
ModuleWord = Literal[
    "layernorm",
    "moe_act",
    "core_attn",
    "mla_up_proj",
    "mlp",
    "moe",
    "shared_experts",
    "all-but-qkv",
    "all-but-qkv-and-output",
    "all-but-products",
]
"""Modules that Megatron can recompute, and JAX's policies by what they save. [text]"""
ShardingWord = Literal[
    "none",
    "ddp",
    "distributed-optimizer",
    "zero1",
    "zero2",
    "zero3",
    "fsdp",
    "fsdp2",
    "megatron-fsdp",
    "hsdp",
]
FabricWord = Literal[
    "none",
    "infiniband",
    "roce",
    "infiniband-or-roce",
    "efa",
    "tcpx",
    "tcpxo",
    "omni-path",
    "slingshot",
    "ethernet",
    "unknown",
]


class _Words(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MemoryWords(_Words):
    """Peak memory: how much, and which counter of which rank."""

    gib: float = Field(gt=0, le=1e6, allow_inf_nan=False)
    """Peak. [GiB]"""
    counter: Counter = "unknown"
    ranks: Ranks = "unknown"
    unit_certain: bool = True
    rounded: bool = False


class RecomputeWords(_Words):
    """Recomputation of a run; at most one of the last four fields narrows it."""

    kind: RecomputeWord = "unknown"
    modules: tuple[ModuleWord, ...] = ()
    policy: Literal["save-sdpa-and-every-second-matmul"] | None = None
    layers: PositiveInt | None = None
    """Layers of the whole model. [1]"""
    layers_per_virtual_stage: PositiveInt | None = None
    every: PositiveInt | None = None
    """Every n-th layer. [1]"""
    fraction: float | None = Field(default=None, gt=0, le=1)
    """Share of the layers. [1]"""


class ShardingWords(_Words):
    """Sharding of states over replicas."""

    kind: ShardingWord
    group: PositiveInt | None = None
    """Ranks that share one copy; all of dp * cp where absent. [1]"""
    reshard_after_forward: bool = True


class OptimizerWords(_Words):
    """Optimizer, and the place of the optimizer state."""

    name: Literal["adam", "muon", "lamb", "sgd", "adafactor", "galore", "apollo"] = (
        "adam"
    )
    rank: PositiveInt | None = None
    """Rows that a low-rank optimizer projects a gradient on to. [1]"""
    state_bits: Literal[8, 16, 32] = 32
    in_backward: bool = False
    on_cpu: bool = False


class ScheduleWords(_Words):
    """Pipeline schedule of a run."""

    kind: Literal["none", "1f1b", "interleaved"] = "none"
    stated: bool = False
    overlap: Literal["none", "unknown"] = "unknown"


class OffloadWords(_Words):
    """Fractions that lay in host memory. [1]."""

    optimizer: float = Field(default=0, ge=0, le=1)
    parameters: float = Field(default=0, ge=0, le=1)
    gradients: float = Field(default=0, ge=0, le=1)
    checkpoints: float = Field(default=0, ge=0, le=1)
    activations: float = Field(default=0, ge=0, le=1)
    activation_layers: int = Field(default=0, ge=0, le=10_000)


class PipelineWords(_Words):
    """Layers of the pipeline stages."""

    count_as_layer: tuple[Literal["embedding", "head"], ...] = ()
    """`embedding` and `head` where they took one layer's place. [text]"""
    stages: tuple[Annotated[int, Field(ge=0, le=10_000)], ...] = ()
    """Layers of every virtual stage in model order. [1]"""
    mtp_on_last: bool = False
    """The module of multi-token prediction lies on the last stage."""


class Normalised(_Words):
    """All fixed words of a row."""

    memory: MemoryWords | None = None
    recompute: RecomputeWords = RecomputeWords()
    sharding: ShardingWords | None = None
    optimizer: OptimizerWords = OptimizerWords()
    schedule: ScheduleWords = ScheduleWords()
    offload: OffloadWords = OffloadWords()
    pipeline: PipelineWords = PipelineWords()
    fabric: FabricWord = "unknown"

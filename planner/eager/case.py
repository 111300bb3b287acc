"""Case and results of a replay: one model, one way of training, one GPU of the job."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.frameworks.framework import LossForm


class LoraCase(BaseModel):
    """Low-rank adapters beside frozen weights (peft's ``LoraConfig``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    r: int = Field(gt=0, description="rank [1]")
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")
    fp32: bool = Field(default=False, description="adapters in fp32, peft's default")
    dropout: float = Field(default=0.0, ge=0, lt=1, description="[1]")
    quant: Literal["nf4"] | None = Field(
        default=None, description="frozen weights in 4 bits, doubly quantised"
    )
    dora: bool = Field(default=False, description="magnitudes beside directions")


class EagerCase(BaseModel):
    """One training iteration of a Hugging Face model under eager PyTorch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: dict[str, Any] = Field(description="fields of the config, and its family")
    layers: int | None = Field(default=None, gt=0, description="blocks instead [1]")
    seq: int = Field(default=2048, gt=0, description="[tokens]")
    mbs: int = Field(default=1, gt=0, description="[sequences]")
    ga: int = Field(default=1, gt=0, description="micro-steps before a step [1]")
    attention: Literal["sdpa", "eager"] = "sdpa"
    padding: bool = Field(default=False, description="batches hold padding: a mask")
    precision: Literal["bf16", "amp_bf16", "fp32", "master_bf16"] = "bf16"
    optimizer: Literal["adamw", "sgd", "sgdm", "adafactor", "none"] = "adamw"
    opt_impl: Literal["fused", "foreach", "forloop"] = "fused"
    recompute: Literal["none", "full", "selective"] = "none"
    loss: LossForm | Literal["none"] = "hf"
    keep_outputs: bool = Field(default=False, description="the caller keeps logits")
    zero: Literal[0, 2, 3] = Field(default=0, description="FSDP2 sharding")
    world: int = Field(default=1, gt=0, description="[GPUs]")
    mp: bool = Field(default=True, description="fp32 shards, bf16 compute")
    flat: bool = Field(default=False, description="FSDP1: flat parameters, wrapped")
    offload: bool = Field(default=False, description="flat shards wait on the CPU")
    tp: int = Field(default=1, gt=0, description="tensor parallel [GPUs]")
    sp: bool = Field(default=True, description="sequence parallel where tp > 1")
    pp: int = Field(default=1, gt=0, description="pipeline stages [1]")
    stage: int = Field(default=0, ge=0, description="which stage [1]")
    lora: LoraCase | None = None
    experts_implementation: str | None = None


class Unsupported(ValueError):  # noqa: N818  a word of the interface
    """The replay has no operations for this case; the message says which."""


class Peak(BaseModel):
    """The highest total of a phase and what it was made of."""

    model_config = ConfigDict(frozen=True)

    total: int = Field(description="[B]")
    by_category: dict[str, int] = Field(description="[B]")


class Replay(BaseModel):
    """Peaks of one iteration by phase, as ``max_memory_allocated`` would tell them."""

    model_config = ConfigDict(frozen=True)

    phases: dict[str, Peak]
    after: dict[str, dict[str, int]] = Field(description="left at a phase's end [B]")
    parameters: int = Field(description="[parameters]")
    trainable: int = Field(description="[parameters]")

    @property
    def phase(self) -> str:
        """Name of the phase with the highest total."""
        return max(self.phases, key=lambda name: self.phases[name].total)

    @property
    def peak(self) -> Peak:
        """Highest peak of all phases. [B]."""
        return self.phases[self.phase]

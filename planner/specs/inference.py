"""The inference block of a spec: what generating text with a model holds in memory."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

WeightFormat = Literal["fp32", "fp16", "bf16", "fp8", "int8", "int4", "nf4", "fp4"]
CacheFormat = Literal["fp32", "fp16", "bf16", "fp8", "int8", "int4"]

PREFILL_CHUNK = 2048
"""Prompt tokens of one forward pass where the job names none. [token]

Source: vLLM, EngineArgs.max_num_batched_tokens of chunked prefill.
"""


class InferenceSpec(BaseModel):
    """Serving one model on one tensor-parallel group of GPUs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: WeightFormat = "bf16"
    """Format of the linears' weights; the format decides which weights stay wider."""
    kv_cache: CacheFormat = "bf16"
    """Format of cached keys and values."""
    batch: int = Field(default=1, gt=0, strict=True)
    """Sequences in flight at one time. [sequence]"""
    context: int = Field(gt=0, strict=True)
    """Tokens of each sequence, prompt and answer together. [token]"""
    tp: int = Field(default=1, ge=1, strict=True)
    """GPUs that share every layer. [1]"""
    chunk: int = Field(default=PREFILL_CHUNK, gt=0, strict=True)
    """Most prompt tokens that one forward pass takes. [token]"""

"""Formats of weights and caches as facts: read from ``formats.yaml``."""

from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.numbers import (
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
)
from planner.hardware.reading.yaml_text import parse_yaml


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str


class WeightFacts(_Fact):
    """Storage of weights in one format.

    Attributes:
        bits: Size of one weight of a linear. [bit]
        others: Size of a number outside linears: embedding, head, norms. [bit]
        row_bits: Added for every output of a linear. [bit]
        group: Inputs that share a scale; None without groups. [1]
        group_bits: Added for every group of inputs. [bit]
        expanded: Added for one weight while the linear computes. [B]
        missing_on: Architectures of GPUs that cannot compute in the format. [text]
    """

    bits: PositiveFloat
    others: PositiveFloat
    row_bits: NonNegativeFloat = 0.0
    group: PositiveInt | None = None
    group_bits: NonNegativeFloat = 0.0
    expanded: NonNegativeFloat = 0.0
    missing_on: tuple[str, ...] = ()

    def linear_bytes(self, inputs: float, outputs: float) -> float:
        """Bytes of the weight and the scales of one linear. [B].

        ``(K N bits + N row_bits + N ceil(K / group) group_bits) / 8``
        """
        bits = inputs * self.bits + self.row_bits
        if self.group is not None:
            bits += -(-inputs // self.group) * self.group_bits
        return outputs * bits / 8


class CacheFacts(_Fact):
    """Storage of cached keys and values in one format.

    Attributes:
        bits: Size of one number. [bit]
        vector_bits: Added for every vector: one token's key or value of a head. [bit]
    """

    bits: PositiveFloat
    vector_bits: NonNegativeFloat = 0.0

    def vector_bytes(self, width: int) -> float:
        """Bytes of one cached vector.

        Returns:
            ``(width bits + vector_bits) / 8``, zero for an empty vector. [B]
        """
        return (width * self.bits + self.vector_bits) / 8 if width else 0.0


class RuntimeFacts(_Fact):
    """Memory of a serving process on a GPU beside the model.

    Attributes:
        context_gb: CUDA context, modules and workspaces. [GB]
        communicator_gb: Buffers of one communicator. [GB]
        logits_bytes: Size of one logit of a sampled token. [B]
    """

    context_gb: NonNegativeFloat
    communicator_gb: NonNegativeFloat
    logits_bytes: PositiveFloat


class Formats(BaseModel):
    """All facts of inference.

    Attributes:
        weights: Storage of weights, by name of the format. [-]
        cache: Storage of cached keys and values, by name of the format. [-]
        runtime: Memory of the serving process. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: dict[str, WeightFacts]
    cache: dict[str, CacheFacts]
    runtime: RuntimeFacts


@cache
def formats() -> Formats:
    """Read ``formats.yaml`` once."""
    text = (files("planner.cost.inference") / "formats.yaml").read_text("utf-8")
    return Formats.model_validate(parse_yaml(text))

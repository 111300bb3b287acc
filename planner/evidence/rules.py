"""What is assumed where a measured row leaves something open: read from YAML."""

from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from hardware.specs import FabricKind


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str


class PowerRule(_Rule):
    """Sustained rate of a capped part: (W / W_nominal) ** exponent."""

    exponent: float = Field(gt=0, le=1)


class LatentRule(_Rule):
    """Ranks of latent attention that a row does not give. [1]."""

    q_rank: PositiveInt
    kv_rank: PositiveInt
    nope_dim: PositiveInt
    rope_dim: PositiveInt
    value_dim: PositiveInt


class FabricRule(_Rule):
    """Network that a row does not name."""

    kind: FabricKind
    gbps: dict[str, PositiveFloat]
    """Line rate per GPU by architecture. [Gb/s]"""
    other_gbps: PositiveFloat
    """The same for all other architectures. [Gb/s]"""


class InterleavingRule(_Rule):
    """Depth of interleaving that a row does not give."""

    layers_per_virtual_stage: PositiveInt


class Rules(BaseModel):
    """All of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    power: PowerRule
    latent_attention: LatentRule
    fabric: FabricRule
    interleaving: InterleavingRule


@cache
def rules() -> Rules:
    """Read ``planner/evidence/rules.yaml``.

    Returns:
        The rules. [-]
    """
    text = (files("planner.evidence") / "rules.yaml").read_text("utf-8")
    return Rules.model_validate(yaml.safe_load(text))

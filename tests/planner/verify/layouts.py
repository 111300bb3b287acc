"""Layouts of the small jobs, legal as they stand, and how to write others."""

from typing import Any

from planner.specs.layouts.layout import Layout, Offload, RecomputeRange, Stage

DENSE: dict[str, Any] = {
    "tp": 2,
    "sp": True,
    "pp": 2,
    "dp": 4,
    "dp_shard": 4,
    "zero_stage": 1,
    "micro_batch": 2,
    "grad_accum": 4,
    "stages": (7, 6),
}
MOE = DENSE | {"ep": 2, "stages": (4, 4)}
TITAN = DENSE | {"zero_stage": 2}
PLAIN = DENSE | {"sp": False, "pp": 1, "dp": 8, "micro_batch": 1, "stages": (13,)}
"""A layout of accelerate: tp 2, and FSDP2 over the other ranks."""
FSDP = PLAIN | {"zero_stage": 3, "dp_shard": 8}
ACCELERATE: dict[str, Any] = {"framework": "accelerate"}
ON_HOST = Offload(optimizer=1.0)
SHARDS_ON_HOST = Offload(optimizer=1.0, parameters=1.0, gradients=1.0)
FLAT = DENSE | {"pp": 1, "dp": 8, "dp_shard": 8, "grad_accum": 2, "stages": (13,)}
INTERLEAVED = DENSE | {"vpp": 2, "schedule": "interleaved", "stages": (4, 4, 4, 1)}


def layout(fields: dict[str, Any]) -> Layout:
    stages = (s if isinstance(s, Stage) else Stage(layers=s) for s in fields["stages"])
    # a copy is not validated, so that broken ranges reach the rule
    plain = Layout(**(fields | {"stages": ()}))
    return plain.model_copy(update={"stages": tuple(stages)})


def kept(layers: int, *kinds: tuple[int, str]) -> Stage:
    """A stage of ranges, each given by its number of layers and its kind."""
    at, ranges = 0, []
    for count, kind in kinds:
        ranges.append(RecomputeRange(start=at, stop=at + count, kind=kind))
        at += count
    return Stage(layers=layers, recompute=tuple(ranges))

"""Rotary positions of a model in Megatron's arguments."""

from collections.abc import Mapping

from planner.frameworks.megatron.families import families
from planner.launch.brief import Brief
from planner.models.layers.blocks import LatentAttention
from planner.models.layers.rotary import scaling_of

Argument = tuple[str, object]


def base_of(brief: Brief) -> float | None:
    """Rotary base that a model's fields give.

    Returns:
        The base; None where the fields give none. [1]
    """
    parameters = brief.model.get("rope_parameters")
    inside = parameters.get("rope_theta") if isinstance(parameters, Mapping) else None
    found = brief.model.get("rope_theta") or inside
    return None if found is None else float(str(found))


def rotary_arguments(brief: Brief) -> list[Argument]:
    """Options of rotary positions."""
    family = families()[brief.architecture.family]
    base = base_of(brief) or family.base or 10_000
    found: list[Argument] = [
        ("--position-embedding-type", "rope"),
        ("--rotary-base", round(base)),
    ]
    part = brief.model.get("partial_rotary_factor")
    if part and float(str(part)) < 1:
        found.append(("--rotary-percent", float(str(part))))
    return [*found, *_scaling(brief)]


def _scaling(brief: Brief) -> list[Argument]:
    kind, fields = scaling_of(brief.model)
    if isinstance(brief.architecture.kinds[0].attention, LatentAttention):
        return _latent(kind, fields)
    if kind == "llama3":
        factor = fields.get("factor") or 8.0
        return [("--use-rope-scaling", True), ("--rope-scaling-factor", factor)]
    return []


def _latent(kind: str, fields: Mapping[str, object]) -> list[Argument]:
    """Options of latent attention: YaRN by default, and fused rotation with YaRN."""
    if kind != "yarn":
        return [("--rope-type", "rope"), ("--no-rope-fusion", True)]
    return [
        ("--rope-type", "yarn"),
        ("--rotary-scaling-factor", fields.get("factor") or 40),
        ("--mscale", _given(fields, "mscale", 1.0)),
        ("--mscale-all-dim", _given(fields, "mscale_all_dim", 0.0)),
    ]


def _given(fields: Mapping[str, object], name: str, default: float) -> object:
    value = fields.get(name)
    return default if value is None else value

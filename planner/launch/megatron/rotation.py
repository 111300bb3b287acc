"""Rotary positions of a model in Megatron's arguments."""

from collections.abc import Iterator, Mapping

from planner.launch.brief import Brief
from planner.launch.megatron.families import families
from planner.models.blocks import LatentAttention

Argument = tuple[str, object]
LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""What --use-rope-scaling is fixed to. [-]"""
YARN = {"original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}
"""What MLATransformerConfig is fixed to where no argument sets it. [-]"""


def scaling_of(model: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """Kind and fields of a model's rotary scaling.

    Args:
        model: Hugging Face fields. [-]

    Returns:
        (kind, fields); kind `default` where positions are not scaled. [-]
    """
    given = model.get("rope_scaling") or model.get("rope_parameters") or {}
    fields: Mapping[str, object] = given if isinstance(given, Mapping) else {}
    kind = str(fields.get("rope_type") or fields.get("type") or "default")
    return kind, fields


def base_of(brief: Brief) -> float | None:
    """Rotary base that a model's fields give.

    Args:
        brief: The plan. [-]

    Returns:
        The base; None where they do not say. [1]
    """
    parameters = brief.model.get("rope_parameters")
    inside = parameters.get("rope_theta") if isinstance(parameters, Mapping) else None
    found = brief.model.get("rope_theta") or inside
    return None if found is None else float(str(found))


def rotary_arguments(brief: Brief) -> list[Argument]:
    """The options of rotary positions.

    Args:
        brief: The plan. [-]

    Returns:
        (option, value). [-]
    """
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
    """Latent attention takes YaRN unless told otherwise; fused rotation needs it."""
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


def rotary_gaps(brief: Brief) -> Iterator[str]:
    """What of a model's rotary positions Megatron has no options for.

    Args:
        brief: The plan. [-]

    Yields:
        Half a sentence each.

    References:
        Megatron-LM core_v0.16.1 megatron/core/models/common/embeddings/
        rotary_pos_embedding.py, apply_llama3_scaling; transformer_config.py,
        MLATransformerConfig.
    """
    kind, fields = scaling_of(brief.model)
    latent = isinstance(brief.architecture.kinds[0].attention, LatentAttention)
    fixed = {"llama3": LLAMA3, "yarn": YARN if latent else None, "default": {}}.get(
        kind
    )
    if fixed is None or (latent and kind == "llama3"):
        yield f"rotary scaling of kind {kind}"
        return
    for name, value in fixed.items():
        if fields.get(name, value) not in (value, None):
            yield f"rotary scaling with {name} {fields[name]}, only {value}"

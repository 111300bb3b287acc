"""Rotary positions as a model's fields describe them."""

from collections.abc import Mapping
from typing import Any


def scaling_of(model: Mapping[str, object]) -> tuple[str, Mapping[str, Any]]:
    """Kind and fields of a model's rotary scaling.

    Args:
        model: Hugging Face fields. [-]

    Returns:
        (kind, fields); kind `default` where positions are not scaled. [-]
    """
    given = model.get("rope_scaling") or model.get("rope_parameters") or {}
    fields: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    kind = str(fields.get("rope_type") or fields.get("type") or "default")
    return kind, fields

"""Choices that a framework has alone but not together, over the declared space."""

from planner.cost.pricing import Pricing
from planner.specs.frameworks.limits import chosen
from planner.specs.layouts.offload import CATEGORIES


def clash_of(
    pricing: Pricing,
    degrees: dict[str, int],
    *,
    zero: int | None = None,
) -> str | None:
    """Rule of two choices of a mesh that the framework lacks together, if any.

    No layout that could run is removed: :attr:`Limits.apart` names only what the
    framework itself refuses. The verifier refuses these choices, too.

    Args:
        pricing: The job; offload is one of the choices. [-]
        degrees: Axes by name. [1]
        zero: ZeRO stage; None where it is not chosen yet. [1]

    Returns:
        The rule, or None. [text]
    """
    limits, offload = pricing.framework.limits, pricing.offload
    if not limits.apart:
        return None
    moved = any(getattr(offload, name) for name in CATEGORIES)
    return limits.clash(chosen(degrees=degrees, zero=zero, offload=moved))

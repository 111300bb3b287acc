"""A GPU's calibration with sections measured anew, on the machine at hand."""

from collections.abc import Mapping
from typing import Any

from planner.hardware.calibration import GpuCalibration
from planner.hardware.reading.files import CatalogError, parse

_BY_KEY = ("gemm", "grouped_gemm", "scale_up_on")
"""Sections with entries by number format or link; each replaces its like."""
_SETTLED = frozenset({"name", "base", "transferred", "borrowed", "scale"})
"""Fields that name the origin of numbers; a measurement does not change them."""


def remeasured(
    calibration: GpuCalibration, sections: Mapping[str, Any], *, where: str
) -> GpuCalibration:
    """Calibration of a GPU with some sections measured anew.

    A number format, a link or an attention curve (kernel, head size, mask) replaces
    its like and leaves the others. Any other section replaces the whole old section.
    A section of which every entry is measured anew is no longer `transferred`.

    Raises:
        CatalogError: No such section, or one is wrong; names the field.
    """
    if not isinstance(sections, Mapping):
        raise CatalogError(f"{where}: holds no block of sections")
    measurable = [n for n in GpuCalibration.model_fields if n not in _SETTLED]
    if unknown := sorted(map(str, sections.keys() - {*measurable})):
        raise CatalogError(
            f"{where}: {unknown[0]}: no such section; sections are "
            f"{', '.join(measurable)}",
        )
    known = calibration.model_dump()
    settled = [n for n in sections if _covers(n, known[n], sections[n])]
    merged = {n: _merged(n, known[n], sections[n]) for n in sections}
    reasons = {n: why for n, why in calibration.transferred.items() if n not in settled}
    left = calibration.borrowed & reasons.keys()
    content = known | merged | {"transferred": reasons, "borrowed": left}
    return parse(where, content, GpuCalibration)


def _merged(section: str, old: Any, new: Any) -> Any:
    """The old entries of a section, with new entries in place of their likes."""
    if section in _BY_KEY and isinstance(new, Mapping):
        return {**old, **new}
    if section == "attention" and isinstance(new, list | tuple):
        there = {_curve(entry) for entry in new}
        return [*new, *(entry for entry in old if _curve(entry) not in there)]
    return new


def _covers(section: str, old: Any, new: Any) -> bool:
    """True if nothing of the old section is left beside the new section."""
    if section in _BY_KEY and isinstance(new, Mapping):
        return set(old) <= set(new)
    if section == "attention" and isinstance(new, list | tuple):
        return {_curve(entry) for entry in old} <= {_curve(entry) for entry in new}
    return True


def _curve(entry: Any) -> tuple[object, ...]:
    """Key of an attention curve: kernel, head size, mask; of a value of any type."""
    fields = entry if isinstance(entry, Mapping) else {}
    return tuple(repr(fields.get(key)) for key in ("kernel", "head_dim", "causal"))

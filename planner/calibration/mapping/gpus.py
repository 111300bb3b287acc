"""Finds the GPU of the catalogue that a measured row means by its own words."""

import re
from functools import cache

from planner.calibration.notes.rules import rules
from planner.calibration.rows.unsupported import UnsupportedError
from planner.errors import did_you_mean
from planner.hardware.catalog import gpu as gpu_of
from planner.hardware.reading.files import Catalog
from planner.hardware.specs import GB, GpuSpec

_FORMS = ("pcie", "nvl", "sxm")
"""Ways a GPU is built in, as names say them; a board with NVLink unless said."""
_HOSTS = 1.2
"""Stated memory over a family's largest from which on it is the host's. [1]"""
_ABSENT = re.compile(r"\b(no|without)( any)? (nvlink|nvswitch|infinity|xgmi)\w*")
"""Links that a text says are not there. [pattern]"""
_NOT_FAMILIES = re.compile(r"^(\d+gb|sxm\d?|pcie|nvl|gcd|rtx)$")


def gpu_named(
    text: str, memory_gb: float | None, catalog: Catalog, joined_by: str = ""
) -> GpuSpec:
    """The catalogue's GPU of a free-text name.

    The longest family in the text decides (`l40s` before `l40`), then the form
    (`PCIe`, `NVL`, else SXM). Then the memory nearest to the stated memory decides,
    or the usual memory where none is stated.

    Args:
        text: Name, as `A100-80GB`, `NVIDIA H100 80GB HBM3`, `RTX 4090`. [text]
        memory_gb: Memory on the label, where stated. [GB]
        catalog: Files of facts. [-]
        joined_by: Link that joins the GPUs of a node, where stated. [text]
    """
    words = text.lower().replace("rtx", "rtx ")
    families = _families(catalog)
    matches = {
        name: len("".join(family))
        for name, family in families.items()
        if all(_mentions(words, part) for part in family)
    }
    if not matches:
        near = did_you_mean(words, families)
        raise UnsupportedError(f"hardware: no GPU {text!r} in the catalogue; {near}")
    longest = max(matches.values())
    wanted = memory_gb or _memory(words)
    form = _form(words, joined_by.lower())
    names = [name for name, length in matches.items() if length == longest]
    known = [gpu_of(name, catalog) for name in names]
    if wanted and wanted > _HOSTS * max(map(_label, known)):
        wanted = None
    return min(known, key=lambda gpu: _distance(gpu, form, wanted))


@cache
def _families(catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """Every GPU's words that are neither memory nor form: `h100`, `6000 ada`."""
    return {
        name: tuple(w for w in name.split("-") if not _NOT_FAMILIES.match(w))
        for name in catalog.names("gpus")
    }


def _mentions(text: str, part: str) -> bool:
    """True where a family's word starts a word and is not cut inside a number."""
    stem = part[:-1] + "x?" if part.endswith("x") else re.escape(part)
    spaced = re.sub(r"(?<=[a-z])(?=\d)", "[ -]?", stem)
    return bool(re.search(rf"(?<![a-z0-9]){spaced}(?![0-9])", text))


def _memory(text: str) -> float | None:
    match = re.search(r"(\d+) ?g(i?)b\b", text)
    return float(match[1]) if match else None


def _form(text: str, joined_by: str) -> str:
    for form in _FORMS:
        if form in text:
            return form
    return "pcie" if joined_by_pcie(joined_by) and "sxm" not in joined_by else "sxm"


def joined_by_pcie(text: str) -> bool:
    """Tell whether GPUs of a node are joined by PCIe and by nothing faster.

    Returns:
        True for `pcie 4.0 x16, no nvlink`. [-]
    """
    there = _ABSENT.sub("", text)
    return "pcie" in there and not re.search(r"nvlink|nvswitch|infinity|xgmi", there)


def _label(gpu: GpuSpec) -> float:
    """Memory that a GPU is sold with. [GB]."""
    return (gpu.memory_label or gpu.memory_capacity) / GB


def _distance(
    gpu: GpuSpec, form: str, memory_gb: float | None
) -> tuple[bool, float, bool, str]:
    """Sort key, nearest entry first: form, memory, unusual size, name."""
    forms = [known for known in _FORMS if known in gpu.name]
    off = abs(_label(gpu) - memory_gb) if memory_gb else 0.0
    unusual = gpu.name not in rules().gpus.usual
    return bool(forms) and form not in forms, off, unusual, gpu.name

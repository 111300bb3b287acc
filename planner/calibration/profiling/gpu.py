"""GPU of the catalog that a driver's name stands for."""

import re

from planner.errors import BadInputError, did_you_mean
from planner.hardware.catalog import gpu
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.quantities import Bytes

_PACKAGES = ("pcie", "nvl")
"""Packagings that a driver names; any other is on a board of its own."""
_MEMORY = 0.1
"""Relative difference of memories that is still the same GPU. [1]"""


def catalog_name(device: str, memory: Bytes, catalog: Catalog) -> str:
    """The GPU of the catalog that a driver's name means.

    All words of the entry but memory and socket are in the device's name. Packagings
    agree, and the entry's memory is the nearest, at most 10 % off.

    Args:
        device: The driver's name, for example `NVIDIA H100 80GB HBM3`. [text]
        memory: Memory of the device. [B]
        catalog: Files of facts. [-]
    """
    words = set(re.findall(r"[a-z0-9]+", device.lower()))
    found: list[tuple[int, float, str]] = []
    for name in catalog.names("gpus"):
        own = _words(name)
        off = abs(gpu(name, catalog).memory_capacity / memory - 1)
        if own <= words and _package(own) == _package(words) and off <= _MEMORY:
            found.append((-len(own), off, name))
    if not found:
        near = did_you_mean(device.lower(), catalog.names("gpus"))
        raise BadInputError(
            f"this GPU is none that we know; {near}",
            field="--gpu",
            value=device,
            allowed="--gpu NAME, one of `planner catalog gpus`",
        )
    return min(found)[2]


def _words(name: str) -> set[str]:
    """Words of a catalog name, without memory, socket and part of a package."""
    words = name.split("-")
    return {w for w in words if not re.fullmatch(r"\d+gb|sxm\d*|gcd", w)}


def _package(words: set[str]) -> str:
    """Packaging of the GPU, as far as names say."""
    return next((p for p in _PACKAGES if p in words), "")

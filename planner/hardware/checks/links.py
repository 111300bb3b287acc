"""Rates that a link's generation fixes."""

from collections.abc import Iterator

from planner.hardware.catalog import link
from planner.hardware.checks.findings import Finding
from planner.hardware.reading.files import Catalog
from planner.hardware.specs import GB, LinkSpec

LANE = {"pcie3": 0.985, "pcie4": 1.969, "pcie5": 3.938, "pcie6": 7.563}
"""A PCIe lane after its encoding: twice as much each generation; the sixth with its
error correction. [GB/s]"""
NVLINK = {"nvlink2": 25, "nvlink3": 25, "nvlink4": 25, "nvlink5": 50, "nvlink6": 100}
"""One NVLink by generation, one direction. [GB/s]"""
ROUNDED = 0.005
"""Relative difference that rounding explains. [1]"""


def link_findings(catalog: Catalog) -> Iterator[Finding]:
    """Links whose rate is not a whole number of their generation's."""
    for name in catalog.names("links"):
        spec = link(name, catalog)
        generation = name.split("-")[0]
        unit = LANE.get(generation) or NVLINK.get(generation)
        words = "" if unit is None else _strange(spec, unit)
        if words and not _slower_bridge(spec):
            yield Finding("links", name, "per_link", words)


def _strange(spec: LinkSpec, unit: float) -> str:
    """Words on a rate that is no whole number of units."""
    if spec.links is None or spec.per_link is None:
        return "links and per_link are not given" if spec.kind == "scale-up" else ""
    # A mesh may spread its links unevenly: only their sum is fixed.
    rate = spec.bandwidth if spec.topology == "mesh" else spec.per_link
    units = float(rate / GB / unit)
    if round(units) >= 1 and abs(units / round(units) - 1) <= ROUNDED:
        return ""
    return f"{rate / GB:.5g} GB/s is no whole number of {unit:g} GB/s"


def _slower_bridge(spec: LinkSpec) -> bool:
    """Bridges of graphics cards run below the rate of a module's links."""
    return spec.name.endswith("bridge-rtx")

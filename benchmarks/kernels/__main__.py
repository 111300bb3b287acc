"""Prices the kernels of the tables: ``python -m benchmarks.kernels``.

Writes the page. ``--check`` prints it; ``--fit`` prints the shapes that fit the tables.
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template

from benchmarks.kernels.fit import fitted
from benchmarks.kernels.priced import product_rate
from benchmarks.kernels.ratios import by_gpu
from planner.hardware.calibration import calibration
from planner.hardware.catalog import gpu
from planner.hardware.kernels.shapes import architectures
from planner.hardware.reading.files import SHIPPED

HERE = Path(__file__).parent
PAIRS = (
    ("b300-sxm-288gb", "b200-sxm-180gb"),
    ("gb300-279gb", "gb200-186gb"),
    ("gb200-186gb", "b200-sxm-180gb"),
)


def main() -> None:
    """Write, or print, the page or the fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--fit", action="store_true", help="fit the shapes anew")
    asked = parser.parse_args()
    if asked.fit:
        for one in fitted():
            print(one)
    elif asked.check:
        print(page(), end="")
    else:
        (HERE / "README.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page.

    Returns:
        Markdown.
    """
    template = Template((HERE / "template.md").read_text(encoding="utf-8"))
    return template.safe_substitute(
        gemm=_table("gemm", ("few rows", "between", "large")),
        sustained="\n".join(_sustained()),
        pairs=_pairs(),
        experts=_table("experts", ("few tokens", "many tokens")),
        attention=_table(
            "attention", [f"length {2**power}" for power in range(11, 15)]
        ),
        deepep=_table("deepep", [f"{nodes} nodes" for nodes in (1, 2, 4)]),
        nccl=_table("nccl", [f"{ranks} ranks, long" for ranks in (2, 4, 8)]),
    )


def _table(name: str, bands: Iterable[str]) -> str:
    """Ratios of one table."""
    bands = list(bands)
    lines = [["GPU", "kernel", *bands], ["---"] * (len(bands) + 2)]
    for chip, kind, found in by_gpu(name):
        lines.append([chip, kind, *(_ratio(found, band) for band in bands)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ratio(found: Mapping[str, float], band: str) -> str:
    return f"{found[band]:.2f}" if band in found else "-"


def _sustained() -> Iterable[str]:
    """Sustained part of each architecture and format, with its source."""
    for name, shapes in architectures().items():
        for kind, shape in shapes.products.items():
            yield f"| {name} {kind} | {shape.sustained:g} | {shape.held} |"


def _pairs() -> str:
    """Ratios of TDP and of short-run rates."""
    kinds = ("bf16", "fp8", "nvfp4")
    lines = [["chips", "TDP", *kinds], ["---"] * 5]
    for one, other in PAIRS:
        power = gpu(one, SHIPPED).tdp / gpu(other, SHIPPED).tdp
        rates = (_over(kind, one, other) for kind in kinds)
        lines.append([f"{one} / {other}", f"{power:.2f}", *rates])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _over(kind: str, one: str, other: str) -> str:
    """Ratio of two chips' rates."""
    first, second = (
        product_rate(chip, kind, calibration(chip, SHIPPED).gemm[kind]).flops
        for chip in (one, other)
    )
    return f"{first / second:.2f}"


if __name__ == "__main__":
    main()

"""Growth of a search with GPUs, layers and experts: one job, scaled."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.search.cases import OWN, Case
from benchmarks.search.process import Row


class Axis(NamedTuple):
    """One quantity that is doubled, and the job's fields that follow it."""

    name: str
    job: Path
    values: tuple[int, ...]
    assignments: tuple[str, ...]
    """Assignments with ``{value}``, ``{nodes}`` and ``{sequences}`` of the batch."""


GPUS = Axis(
    "GPUs",
    OWN / "growth-gpus.yaml",
    tuple(2**k for k in range(9, 18)),
    ("cluster.nodes={nodes}", "training.global_batch={sequences}"),
)
"""Llama 3.1 405B on 512 to 131,072 H100, an eighth as many sequences as GPUs."""
LAYERS = Axis(
    "layers",
    OWN / "growth-layers.yaml",
    (24, 48, 96, 192, 384),
    ("model.num_hidden_layers={value}",),
)
"""A model of one width and more and more layers on 1,024 H100."""
EXPERTS = Axis(
    "experts",
    OWN / "growth-experts.yaml",
    (8, 16, 32, 64, 128, 256, 512),
    ("model.num_experts={value}",),
)
"""A model of 48 layers, 8 experts a token, and more and more experts on 1,024 H100."""
AXES = {axis.name: axis for axis in (GPUS, LAYERS, EXPERTS)}
PER_NODE = 8
"""GPUs of a node, and GPUs for each sequence of a batch. [1]"""
FITTED = {
    "candidates": "candidates",
    "first plan": "first_plan_s",
    "whole search": "search_s",
    "CPU time": "cpu_s",
    "peak memory": "peak_mib",
}
"""Quantities that a power is fitted to, with their fields. [text]"""


def cases(axis: Axis) -> list[tuple[int, Case]]:
    """The scaled jobs of an axis.

    Args:
        axis: The quantity that grows.

    Returns:
        Each value with its case in the default space.
    """
    return [(value, _case(axis, value)) for value in axis.values]


def _case(axis: Axis, value: int) -> Case:
    share = value // PER_NODE
    sets = (
        text.format(value=value, nodes=share, sequences=share)
        for text in axis.assignments
    )
    return Case(f"{value} {axis.name}", "default", axis.job, tuple(sets))


def point(axis: Axis, value: int, row: Row) -> Row:
    """A measurement as a point of growth.

    Args:
        axis: The quantity that grows.
        value: Value of the quantity. [1]
        row: The measurement.

    Returns:
        The measurement with its place on the axis, without its series. First plan,
        proof and search leave out the time to load the modules.
    """
    kept = {key: cell for key, cell in row.items() if key != "series"}
    loading = row.get("phases_s", {}).get("import", 0.0)
    if row.get("first_plan_s") is not None:
        kept["first_plan_s"] = row["first_plan_s"] - loading
    if row.get("proof_s") is not None:
        kept["proof_s"] = row["proof_s"] - loading
    kept["search_s"] = row["process_s"] - loading
    return {"along": axis.name, "value": value, **kept}


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """The power with which something grows, by least squares over the logarithms.

    Args:
        points: Pairs (x, y), both above zero. [-]

    Returns:
        k of the ``y = c x^k`` that fits best; none for less than two points. [1]
    """
    if len(points) < 2:
        return None
    x, y = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def exponents(rows: Sequence[Row]) -> dict[str, float | None]:
    """The powers of an axis.

    Args:
        rows: Points of the axis.

    Returns:
        Power by quantity. [1]
    """
    return {
        name: exponent([(row["value"], row[f]) for row in rows if row.get(f)])
        for name, f in FITTED.items()
    }

"""Fit of the shapes of products' rates to the tables, as calibration/kernels.yaml has.

Robust on the logarithm of times. Rates of the chips of an architecture differ by
their level alone. Narrow formats take the overhead of bf16; their cast has a price.
Last waves are lost by a tail for all shapes, or counted where that fits far better.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from benchmarks.kernels.priced import CASTS, cast, product_rate
from benchmarks.kernels.tables import Shaped, table
from planner.cost.kernels import gemm_time
from planner.cost.meshes import Floats
from planner.hardware.calibration import GemmCalibration, calibration
from planner.hardware.catalog import gpu
from planner.hardware.reading.files import SHIPPED

SCALES = (100.0, 0.3, 3e-6)
MOST = (2000.0, 2.0, 3e-5)
START = (100.0, 0.3, 3e-6)
"""Scale, bound and start of ramp, traffic and overhead. [1], [1], [s]"""
LOSSES = {"tail": (0.1, 2.0, 0.2), "depth": (1000.0, 20000.0, 2000.0)}
"""Form of the loss to last waves: scale, bound and start. [1]"""
WORTH = 0.75
"""Spread over that of a tail below which waves are counted. [1]"""


class Fitted(NamedTuple):
    """Shape of one architecture's products in one format."""

    architecture: str
    kind: str
    loss: str
    """Form of the loss to last waves. [text]"""
    lost: float
    """Constant of the loss. [1]"""
    ramp: float
    traffic: float
    overhead: float
    levels: dict[str, float]
    """GPU to its short run's part of the peak. [1]"""
    spread: float
    """Standard deviation of the logarithm of priced over measured time. [1]"""


def fitted() -> Iterator[Fitted]:
    """Shapes of all architectures and formats with a table.

    Yields:
        One for each.
    """
    kernels = list(table("gemm"))
    overheads: dict[str, float] = {}
    for kind in CASTS:
        for architecture in sorted({gpu(k.key["gpu"], SHIPPED).arch for k in kernels}):
            own = [
                k
                for k in kernels
                if k.key["type"] == kind
                and gpu(k.key["gpu"], SHIPPED).arch == architecture
            ]
            if own:
                known = overheads.get(architecture)
                tail, counted = (
                    _fit(architecture, kind, loss, own, known) for loss in LOSSES
                )
                better = counted.spread < WORTH * tail.spread
                one = counted if better else tail
                overheads.setdefault(architecture, one.overhead)
                yield one


def _fit(
    architecture: str,
    kind: str,
    loss: str,
    kernels: list[Shaped],
    overhead: float | None,
) -> Fitted:
    """Shape of one architecture and format, with one form of the loss."""
    chips = sorted({k.key["gpu"] for k in kernels})
    batches = [
        _Batch(chip, kind, [k for k in kernels if k.key["gpu"] == chip])
        for chip in chips
    ]

    def errors(constants: Floats) -> Floats:
        shape = [*constants[:3], constants[3] if overhead is None else overhead]
        levels = constants[4:]
        each = zip(batches, levels, strict=True)
        return np.concatenate([one.errors(loss, shape, level) for one, level in each])

    many, (scale, most, start) = len(chips), LOSSES[loss]
    found = least_squares(
        errors,
        [start, *START, *[0.6] * many],
        bounds=([0.0] * 4 + [0.1] * many, [most, *MOST, *[1.0] * many]),
        x_scale=[scale, *SCALES, *[0.1] * many],
        loss="soft_l1",
        f_scale=0.1,
    ).x
    spread = float(np.std(errors(found)))
    levels = dict(zip(chips, map(float, found[4:]), strict=True))
    lost, ramp, traffic, own = map(float, found[:4])
    lasts = own if overhead is None else overhead
    shape = (loss, lost, ramp, traffic, lasts)
    return Fitted(architecture, kind, *shape, levels, spread)


class _Batch:
    """Kernels of one chip and format, as columns."""

    def __init__(self, chip: str, kind: str, kernels: list[Shaped]) -> None:
        self.chip, self.kind = chip, kind
        self.rows = np.array([float(k.size) for k in kernels])
        self.outputs = np.array([float(k.number("n")) for k in kernels])
        self.inputs = np.array([float(k.number("k")) for k in kernels])
        seconds = np.array([k.seconds for k in kernels])
        self.logs = np.log(seconds)
        elements = self.rows * self.inputs
        self.casts = np.array([cast(chip, kind, float(e)) for e in elements])
        self.entry = calibration(chip, SHIPPED).gemm[kind]

    def errors(self, loss: str, shape: list[float], level: float) -> Floats:
        """Logarithms of priced over measured time."""
        lost, ramp, traffic, overhead = shape
        constants: GemmCalibration = self.entry.model_copy(
            update={
                "efficiency": level,
                "sustained": 1.0,
                "tail": 0.0,
                "depth": 0.0,
                loss: lost,
                "ramp": ramp,
                "traffic": traffic,
                "overhead": overhead,
            }
        )
        rate = product_rate(self.chip, self.kind, constants)
        alone = gemm_time(rate, self.rows, self.outputs, self.inputs)
        error: Floats = np.log(alone + self.casts) - self.logs
        return error

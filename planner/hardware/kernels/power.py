"""Rates of a GPU that its node holds below the power it may draw."""

from functools import cache

from pydantic import BaseModel, ConfigDict

from planner.hardware.calibration import GpuCalibration, scaled_attention
from planner.hardware.measured import Fraction, Measured
from planner.hardware.reading.files import read
from planner.hardware.reading.shipped import shipped
from planner.hardware.specs import GpuSpec, NodeSpec


class _Law(Measured):
    """Rate kept under a limit: (W / W_most) ** exponent."""

    exponent: Fraction


class _File(BaseModel):
    """Laws of modules and of boards that are sold for desktops."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    module: _Law
    board: _Law


def rate_held(gpu: GpuSpec, node: NodeSpec) -> float:
    """Rate of products under the node's power limit over that without a limit.

    (power_limit / tdp) ** exponent, at most 1. The limit of a superchip is that of the
    module, as its TDP is.

    Returns:
        The ratio, 1 without a limit. [1]
    """
    if node.power_limit is None:
        return 1.0
    share = min(node.power_limit / gpu.tdp, 1.0)
    law = _file().board if gpu.name.startswith("rtx-") else _file().module
    return float(share**law.exponent)


def held(calibration: GpuCalibration, rate: float) -> GpuCalibration:
    """Calibration of a GPU whose cores are held back.

    Products and attention slow down; memory and links do not, since their clocks stay.
    """
    if rate == 1.0:
        return calibration
    products = {
        section: {
            name: entry.model_copy(update={"efficiency": entry.efficiency * rate})
            for name, entry in getattr(calibration, section).items()
        }
        for section in ("gemm", "grouped_gemm")
    }
    curves = scaled_attention(calibration.attention, rate)
    return calibration.model_copy(update={**products, "attention": curves})


@cache
def _file() -> _File:
    return read(shipped("hardware") / "calibration" / "power.yaml", _File)

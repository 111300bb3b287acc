"""Types of quantities: floats, and columns of them, that mypy holds to their units.

``quantities.pyi`` says what a sum, a product and a quotient are: ``Bytes /
BytesPerSecond`` is ``Seconds``, and ``Seconds + Bytes`` an error. As fields of pydantic
they read text with a unit.
"""

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from planner.hardware.reading.units import Quantity

Bytes = Annotated[float, Quantity("B")]
"""An amount of memory. [B]"""
BytesPerSecond = Annotated[float, Quantity("B/s"), Field(gt=0)]
"""A bandwidth, one direction, more than none. [B/s]"""
FlopPerSecond = Annotated[float, Quantity("FLOP/s")]
"""A compute rate, a multiply-add counts as two. [FLOP/s]"""
Seconds = Annotated[float, Quantity("s")]
"""A duration. [s]"""
Watts = Annotated[float, Quantity("W")]
"""A power. [W]"""
Hertz = Annotated[float, Quantity("Hz")]
"""A clock. [Hz]"""
Flops = Annotated[float, Quantity("FLOP")]
"""An amount of work, a multiply-add counts as two. [FLOP]"""
Usd = Annotated[float, Quantity("USD")]
"""An amount of money. [USD]"""
UsdPerKwh = Annotated[float, Quantity("USD/kWh")]
"""Price of electricity. [USD/kWh]"""
UsdPerKwMonth = Annotated[float, Quantity("USD/kW-month")]
"""Price of room, cooling and connection for a load. [USD/kW-month]"""
KgPerKwh = Annotated[float, Quantity("kg/kWh")]
"""Carbon dioxide that electricity stands for. [kg/kWh]"""
GpuHours = Annotated[float, Quantity("GPU-h")]
"""Time of one GPU. [GPU-h]"""
Nanoseconds = int
"""A duration in whole numbers, of which a solver adds many without loss. [ns]"""
Blocks = int
"""An amount of memory in blocks of 512 B, as the solver counts it. [512 B]"""


class Column:
    """Values of one quantity, as ``Column[Seconds]``: one for each mesh, mostly."""

    dtype: type[np.generic] = np.float64

    def __class_getitem__(cls, quantity: object) -> object:
        """Array, whatever the quantity."""
        del quantity
        return npt.NDArray[cls.dtype]


class IntColumn(Column):
    """Whole numbers of one quantity, as ``IntColumn[Nanoseconds]``."""

    dtype = np.int64

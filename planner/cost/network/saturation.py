"""Measured part of a plateau that a message inside a domain reaches."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from planner.cost.meshes import Floats
from planner.hardware.reading.quantities import Bytes, BytesPerSecond, Column, Seconds
from planner.hardware.scale_up import Curve

CURVE_RANKS = 8
"""Ranks of the measured all-reduce curves. [1]"""
CURVE_PASSES = 2 * (CURVE_RANKS - 1) / CURVE_RANKS
"""Bytes that a rank of the curves moves per byte of message: two ring passes. [1]"""


@dataclass(frozen=True)
class Saturation:
    """Bus bandwidth of eight ranks by message."""

    sizes: Column[Bytes]
    """Messages. [B]"""
    times: Column[Seconds]
    """Times of the messages, made never to fall. [s]"""
    plateau: BytesPerSecond
    """Bus bandwidth of the largest message. [B/s]"""

    @classmethod
    def of(cls, curve: Curve) -> Self:
        """Shape of a measured curve.

        Args:
            curve: Messages and bus bandwidths. [B], [B/s]
        """
        sizes, rates = np.array(curve, dtype=np.float64).T
        times = np.maximum.accumulate(CURVE_PASSES * sizes / rates)
        return cls(sizes, times, BytesPerSecond(rates[-1]))

    def share(self, message: Column[Bytes]) -> Floats:
        """Part of the plateau that a message reaches.

        Returns:
            At most 1. [1], shape (meshes,)
        """
        at = np.maximum(message, 1.0)
        time = np.exp(np.interp(np.log(at), np.log(self.sizes), np.log(self.times)))
        reached: Floats = np.minimum(CURVE_PASSES * at / self.plateau / time, 1.0)
        return reached

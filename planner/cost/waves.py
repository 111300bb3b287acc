"""Outputs that the last wave of a product's blocks could make and does not."""

from dataclasses import dataclass

import numpy as np

from planner.cost.meshes import Floats

BLOCK_OUTPUTS = 128 * 128
"""Outputs that one SM makes at a time. [1]"""
BLOCKS = (
    (256, 128, 1.0),
    (128, 256, 1.0),
    (128, 128, 0.75),
    (128, 64, 0.62),
    (64, 128, 0.62),
)
"""Rows and columns of the blocks that a product is cut into, and the rate of each over
that of the largest, fitted to the kernel table of A100. [1]"""


def idle_outputs(rows: Floats, outputs: Floats, units: int) -> Floats:
    """Outputs beyond M N that whole waves of the best block would make.

    A wave is one block on each SM, and lasts as long if it is not full. cuBLAS takes
    the block whose waves take least::

        min over blocks of ceil(ceil(M / a) ceil(N / b) / SMs) SMs a b / rate - M N

    References:
        NVIDIA, Matrix Multiplication Background: wave quantization.
    """
    choices = [
        np.ceil(np.ceil(rows / high) * np.ceil(outputs / wide) / units)
        * (units * high * wide / rate)
        for high, wide, rate in BLOCKS
    ]
    idle: Floats = np.minimum.reduce(choices) - rows * outputs
    return idle


@dataclass(frozen=True)
class Waves:
    """Loss of a GPU's products to waves that are not full."""

    units: int = 0
    """SMs. [1]"""
    tail: float = 0.0
    """Outputs lost to the last wave, in waves of blocks of 128 x 128. [1]"""
    depth: float = 0.0
    """Inputs from which on blocks of a last wave are split; 0 where a block is no unit
    of work, and the tail holds for every shape. [1]"""

    def lost(self, rows: Floats, outputs: Floats, inputs: Floats) -> Floats | float:
        """Outputs that would take as long as what is lost.

        Whole waves are counted where the architecture gives each block a tile. Deep
        products are split along their inputs, which shortens the last wave::

            idle / (1 + K / depth)
        """
        if not self.depth:
            return self.tail * self.units * BLOCK_OUTPUTS
        return idle_outputs(rows, outputs, self.units) / (1.0 + inputs / self.depth)


FULL = Waves()
"""Waves that lose nothing."""

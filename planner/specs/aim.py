"""Quantity that a search makes least, as the numbers that a search needs."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Aim:
    """Amount of a step that a search makes least: dollars, joules, or the time itself.

    ::

        amount = (base + each * nodes) * T + kernel * GPU-seconds in kernels
        key    = amount / whole

    The key of a candidate rises with its step T, so that a bound on the step bounds
    the key. The unit of the key is the second: of the whole fleet, that costs as much.
    """

    name: str = "throughput"
    base: float = 0.0
    """Amount per second whatever a layout uses."""
    each: float = 1.0
    """Amount per second of every node that trains."""
    kernel: float = 0.0
    """Amount per second of a GPU in kernels, above that of a GPU that waits."""
    per_node: int = 0
    """GPUs of a node; 0 where the step itself is sought. [1]"""
    whole: float = 1.0
    """Amount per second of the whole fleet while it waits."""
    most_bytes: float = float("inf")
    """Most device memory that a plan may take of any GPU. [B]"""

    @property
    def is_step(self) -> bool:
        """True where the least amount is the least step."""
        return not self.per_node

    def factor(self, gpus: "Ints | int") -> Floats:
        """Key of a second of a step, kernels aside.

        Returns:
            Above 0; 1 where the step itself is sought. [1], shape of `gpus`
        """
        used = np.asarray(gpus)
        if self.is_step:
            return np.ones(used.shape)
        return (self.base + self.each * -(-used // self.per_node)) / self.whole

    def floor(self, step_s: float, gpus: int) -> float:
        """Least key of any layout, from the least step on all GPUs.

        A step on fewer GPUs lasts longer by their share: ``T(g) >= T(G) G / g``.

        Args:
            step_s: A lower bound on the step with every GPU. [s]
            gpus: GPUs in service. [1]

        Returns:
            A lower bound on the key. [s]
        """
        if self.is_step:
            return step_s
        used = np.arange(1, gpus + 1)
        return float((self.factor(used) * gpus / used).min()) * step_s


FASTEST = Aim()
"""The shortest step."""

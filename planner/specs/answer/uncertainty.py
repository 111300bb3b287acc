"""Spread of measured reality around a prediction."""

from math import exp, inf, log
from statistics import NormalDist

from pydantic import BaseModel, ConfigDict, Field

WAITING = 0.4
"""Share of a step that the GPU waits, beyond which its host decides the step. [1]"""
END = NormalDist().inv_cdf(0.95)
"""Standard deviations to either end of a band, 5 % beyond each. [1]"""


class Band(BaseModel):
    """Bounds over the predicted value that hold 90 % of measurements. [1]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float = Field(gt=0, le=1)
    high: float = Field(ge=1, allow_inf_nan=False)

    def wider(self, factor: float) -> "Band":
        """The band with both logarithms multiplied.

        Args:
            factor: Above 1 to widen, below 1 to narrow. [1]

        Returns:
            Low and high to the power of the factor. [1]
        """
        return Band(low=self.low**factor, high=self.high**factor)

    def beyond(self, times: float) -> float:
        """Probability that a measurement exceeds a multiple of the prediction.

        The logarithm of measured over predicted is normal about 0, with a spread of its
        own on either side; the band's ends are the 5 % and 95 % quantiles.

        Args:
            times: The multiple. [1]

        Returns:
            Between 0 and 1. [1]
        """
        spread = log(self.high) if times >= 1 else -log(self.low)
        end = log(times) / spread * END if spread else inf * (times - 1 or 1)
        return 1 - NormalDist().cdf(end)

    def exceeded(self, probability: float) -> float:
        """Multiple of the prediction that a measurement exceeds with a probability.

        Args:
            probability: Between 0 and 1, both left out. [1]

        Returns:
            The multiple: inverse of :meth:`beyond`. [1]
        """
        ends = NormalDist().inv_cdf(1 - probability) / END
        return exp(ends * log(self.high if ends >= 0 else 1 / self.low))


class Uncertainty(BaseModel):
    """Bands of one GPU and stack, and what they rest on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: Band
    """Band of a step time. [1]"""
    memory: Band
    """Band of the memory that a device must hold beyond the counted states: decides
    whether a run fits. [1]"""
    allocated: Band
    """Band of the peak memory in tensors beyond the counted states. [1]"""
    reserved: Band
    """Band of what the allocator holds at its peak beyond the counted states. [1]"""
    within: float = Field(default=1.0, ge=0, le=1)
    """Share of the time band's half width that the runs of one source have. [1]"""
    why: str
    """One sentence on the measurements behind the bands. [text]"""

    def counted(self, counter: str) -> Band:
        """The band of a peak memory.

        Args:
            counter: Counter that measures it, see :data:`COUNTERS`. [text]

        Returns:
            Bounds over the predicted value. [1]
        """
        band = {DEVICE: self.memory, ALLOCATED: self.allocated}
        return band.get(COUNTERS[counter], self.reserved)


DEVICE, ALLOCATED, RESERVED = "device", "allocated", "reserved"
COUNTERS = {
    "allocated": ALLOCATED,
    "active": ALLOCATED,
    "reserved": RESERVED,
    "unknown": RESERVED,
    "device": DEVICE,
}
"""Counter of a measured peak to the predicted peak that stands beside it. [text]"""
_DEFAULT = Band(low=0.85, high=1.15)
UNMEASURED = Uncertainty(
    time=_DEFAULT,
    memory=_DEFAULT,
    allocated=_DEFAULT,
    reserved=_DEFAULT,
    why="intervals are a default of 15% either way: no measured run of this GPU and "
    "stack has narrowed them yet",
)
"""Bands of a job that was not looked up. [1]"""

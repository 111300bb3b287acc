"""Spread of measured reality around a prediction."""

from functools import lru_cache
from math import exp, inf, log, sqrt
from statistics import NormalDist

from pydantic import BaseModel, ConfigDict, Field

WAITING = 0.4
"""Share of a step that the GPU waits, beyond which its host decides the step. [1]"""
END = NormalDist().inv_cdf(0.95)
"""Standard deviations to either end of a band, 5 % beyond each. [1]"""

FARTHEST = 6.0
"""Standard deviations beyond which nothing is told apart. [1]"""
SLICES = 256
"""Slices of a distribution whose middles stand for it. [1]"""
BISECTIONS = 50
"""Halvings of an interval of deviations. [1]"""


class Band(BaseModel):
    """Bounds over the predicted value that hold 90 % of measurements. [1]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float = Field(gt=0, le=1)
    high: float = Field(ge=1, allow_inf_nan=False)

    def wider(self, factor: float) -> "Band":
        """The band with both logarithms multiplied.

        Args:
            factor: Above 1 to widen, below 1 to narrow. [1]
        """
        return Band(low=self.low**factor, high=self.high**factor)

    def beyond(self, times: float) -> float:
        """Probability that a measurement exceeds a multiple of the prediction.

        The logarithm of measured over predicted is normal about 0, with a spread of its
        own on either side; the band's ends are the 5 % and 95 % quantiles.
        """
        return 1 - NormalDist().cdf(self.score(times))

    def score(self, times: float) -> float:
        """Standard deviations by which a multiple of the prediction is off."""
        if times <= 0:
            return -inf
        spread = log(self.high) if times >= 1 else -log(self.low)
        return log(times) / spread * END if spread else inf * (times - 1 or 1)

    def times(self, score: float) -> float:
        """Multiple of the prediction that is off by so many standard deviations.

        Returns:
            Inverse of :meth:`score`. [1]
        """
        return exp(score / END * log(self.high if score >= 0 else 1 / self.low))

    def exceeded(self, probability: float) -> float:
        """Multiple of the prediction that a measurement exceeds with a probability.

        Returns:
            The multiple: inverse of :meth:`beyond`. [1]
        """
        return self.times(NormalDist().inv_cdf(1 - probability))


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
    alike: float = Field(default=0.0, ge=0, lt=1)
    """Correlation of the memory errors of two layouts of one job and stack. [1]"""
    ran_within: float = Field(default=inf, gt=0)
    """Multiple of the prediction that the memory of a layout that ran stayed within,
    beyond its counted states; inf where none is known to have run. [1]"""
    why: str
    """One sentence on the measurements behind the bands. [text]"""

    def beyond(self, times: float) -> float:
        """Probability that memory exceeds a multiple of its prediction.

        Where another layout of the job ran, this is on the condition that its memory
        stayed within ``ran_within``. Both errors are normal, with the correlation
        ``alike``.
        """
        if self.ran_within == inf:
            return self.memory.beyond(times) if times > 0 else 1.0
        return _beyond(self.memory.score(times), self._limit, self.alike)

    def quantile(self, probability: float) -> float:
        """Multiple of the prediction that memory exceeds with a probability.

        Returns:
            The multiple: inverse of :meth:`beyond`. [1]
        """
        if self.ran_within == inf:
            return self.memory.exceeded(probability)
        score = _score_exceeded(probability, self._limit, self.alike)
        return self.memory.times(score)

    def exceeded(self, probability: float) -> float:
        """Multiple of the prediction that has to fit for a limit on the risk.

        A layout that ran never admits another whose prediction alone is too much.

        Returns:
            The quantile; at least 1 where it is below 1 for a layout that ran. [1]
        """
        return max(
            self.quantile(probability), min(1.0, self.memory.exceeded(probability))
        )

    @property
    def device(self) -> Band:
        """The band of memory, its upper end lower where a layout is known to run."""
        if self.ran_within == inf:
            return self.memory
        low, high = self.quantile(0.95), self.quantile(0.05)
        return Band(low=min(low, 1.0), high=max(high, 1.0))

    @property
    def _limit(self) -> float:
        return max(self.memory.score(self.ran_within), -FARTHEST)

    def counted(self, counter: str) -> Band:
        """The band of a peak memory."""
        band = {DEVICE: self.memory, ALLOCATED: self.allocated}
        return band.get(COUNTERS[counter], self.reserved)


@lru_cache(maxsize=4096)
def _beyond(score: float, limit: float, alike: float) -> float:
    """Probability that a normal error exceeds a score where another is below a limit.

    ``mean over z <= l of 1 - Phi((s - r z) / sqrt(1 - r^2))``, at the middles of
    slices of z that are equally likely; never more than without the condition.
    """
    normal, own = NormalDist(), sqrt(1 - alike**2)
    below = normal.cdf(limit)
    middles = ((slice_ + 0.5) / SLICES * below for slice_ in range(SLICES))
    given = (normal.inv_cdf(max(middle, 1e-300)) for middle in middles)
    chances = (normal.cdf((alike * z - score) / own) for z in given)
    return min(sum(chances) / SLICES, 1 - normal.cdf(score))


@lru_cache(maxsize=256)
def _score_exceeded(probability: float, limit: float, alike: float) -> float:
    """Score that a normal error exceeds with a probability, on the same condition."""
    low, high = -2 * FARTHEST, 2 * FARTHEST
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _beyond(middle, limit, alike) > probability:
            low = middle
        else:
            high = middle
    return high


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

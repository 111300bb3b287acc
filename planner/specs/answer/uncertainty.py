"""Spread of measured reality around a prediction."""

from pydantic import BaseModel, ConfigDict, Field

WAITING = 0.4
"""Share of a step that the GPU waits, beyond which its host decides the step. [1]"""


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


class Uncertainty(BaseModel):
    """Bands of one GPU, stack and architecture, and what they rest on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: Band
    """Band of a step time that the GPU decides. [1]"""
    waiting: Band
    """Band of a step time that the host decides, by launching too slowly. [1]"""
    memory: Band
    """Band of the peak memory, by any counter. [1]"""
    why: str
    """One sentence on the measurements behind the bands. [text]"""

    def step(self, waiting: float) -> Band:
        """The band of a step time.

        Args:
            waiting: Share of the step that the GPU waits for its host. [1]

        Returns:
            Bounds over the predicted value. [1]
        """
        return self.waiting if waiting >= WAITING else self.time


_DEFAULT = Band(low=0.85, high=1.15)
UNMEASURED = Uncertainty(
    time=_DEFAULT,
    waiting=_DEFAULT,
    memory=_DEFAULT,
    why="intervals are a default of 15% either way: no measured run of this GPU and "
    "stack has narrowed them yet",
)
"""Bands of a job that was not looked up. [1]"""

"""How far measured reality lies around a prediction."""

from pydantic import BaseModel, ConfigDict, Field


class Band(BaseModel):
    """Bounds over the predicted value that hold 90 % of measurements. [1]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float = Field(gt=0, le=1)
    high: float = Field(ge=1, allow_inf_nan=False)

    def wider(self, factor: float) -> "Band":
        """The same with both logarithms multiplied.

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
    """Of the step time. [1]"""
    memory: Band
    """Of the peak memory, by any counter. [1]"""
    why: str
    """The measurements behind them, one sentence. [text]"""


_DEFAULT = Band(low=0.85, high=1.15)
UNMEASURED = Uncertainty(
    time=_DEFAULT,
    memory=_DEFAULT,
    why="intervals are a default of 15% either way: no measured run of this GPU and "
    "stack has narrowed them yet",
)
"""Bands of a job that was not looked up. [1]"""

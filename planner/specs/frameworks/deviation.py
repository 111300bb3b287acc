"""Deviation of a measured stack from its documented profile, in six constants."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.frameworks.profile import Profile

Constant = Literal[
    "clock",
    "attention_rate",
    "memory_traffic",
    "latency",
    "network",
    "step_overhead",
]
FACTORS: tuple[Constant, ...] = (
    "clock",
    "attention_rate",
    "memory_traffic",
    "latency",
    "network",
)
"""Constants that a fit multiplies."""
SECONDS: Constant = "step_overhead"
"""The constant that a fit adds to. [s]"""
CONSTANTS: tuple[Constant, ...] = (*FACTORS, SECONDS)
"""All fitted constants, in the order of all columns."""


class Deviation(BaseModel):
    """Factors on five constants of a profile, and seconds added to the sixth.

    The default changes nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    clock: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on the sustained rate of matrix products and attention. [1]"""
    attention_rate: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on the rate of attention. [1]"""
    memory_traffic: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on the bytes of memory-bound operators. [1]"""
    latency: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on launch and host latencies. [1]"""
    network: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Factor on the bandwidth between scale-up domains. [1]"""
    step_overhead: float = Field(default=0.0, allow_inf_nan=False)
    """Time added to the host's time per optimizer step. [s]"""

    def of(self, profile: Profile) -> Profile:
        """The profile with this deviation.

        Returns:
            The profile with six constants moved; no time falls below zero. [-]
        """
        moved: dict[str, float] = {
            name: getattr(profile, name) * getattr(self, name) for name in FACTORS
        }
        moved[SECONDS] = max(profile.step_overhead + self.step_overhead, 0.0)
        return profile.model_copy(update=moved)

    def then(self, other: Self) -> Self:
        """Both deviations together."""
        both: dict[str, float] = {
            name: getattr(self, name) * getattr(other, name) for name in FACTORS
        }
        both[SECONDS] = self.step_overhead + other.step_overhead
        return self.model_copy(update=both)

    def moved(self) -> Mapping[Constant, float]:
        """The constants that are not at their default.

        Returns:
            Factor by name, seconds for the step overhead. [1 or s]
        """
        default = type(self)()
        return {
            name: getattr(self, name)
            for name in CONSTANTS
            if getattr(self, name) != getattr(default, name)
        }

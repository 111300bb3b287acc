"""Parts of a run: each trains some tokens at one batch under one layout."""

from dataclasses import dataclass
from functools import cached_property

from planner.cost.estimate.checkpoint import checkpoint
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.specs.answer.estimate import Estimate, Interval
from planner.specs.answer.memory import Checkpoint
from planner.specs.layouts.layout import Layout


@dataclass(frozen=True)
class Stretch:
    """Tokens that are trained at one batch under one layout.

    Attributes:
        workload: The job, with the batch of this part. [-]
        layout: Layout of the job. [-]
        estimate: Step time of the job under the layout. [-]
        tokens: Tokens to train. [token]
        name: Name of the part. [text]
        phase: Index of the phase; a run is resharded between phases. [1]
    """

    workload: Workload
    layout: Layout
    estimate: Estimate
    tokens: float
    name: str = "the whole run"
    phase: int = 0

    @property
    def steps(self) -> float:
        """Optimizer steps; the last may be part of one. [1]."""
        training = self.workload.training
        return self.tokens / training.step_tokens

    @property
    def productive_s(self) -> Interval:
        """Time of all steps, with the interval of one. [s]."""
        return scaled(self.estimate.step_time_s, self.steps)

    @cached_property
    def saved(self) -> Checkpoint:
        """One checkpoint of this part. [GiB]."""
        return checkpoint(Pricing.of(self.workload, self.layout), self.layout)


def scaled(interval: Interval, factor: float) -> Interval:
    """An interval times a number.

    Args:
        interval: Value and bounds. [any]
        factor: Not negative. [1]

    Returns:
        Value and bounds, each times the factor. [any]
    """
    return Interval(
        value=interval.value * factor,
        low=interval.low * factor,
        high=interval.high * factor,
    )


def summed(intervals: list[Interval]) -> Interval:
    """Intervals added up, their errors taken as common to all.

    Args:
        intervals: Intervals of one unit. [any]

    Returns:
        Sums of values, of lower and of upper bounds. [any]
    """
    return Interval(
        value=sum(one.value for one in intervals),
        low=sum(one.low for one in intervals),
        high=sum(one.high for one in intervals),
    )

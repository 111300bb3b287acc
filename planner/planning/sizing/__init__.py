"""From time or money to the model that they train best."""

from planner.planning.sizing.ask import Ask
from planner.planning.sizing.rate import Rate

__all__ = ["Ask", "Rate"]

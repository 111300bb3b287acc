"""From time or money to the model that they train best."""

from planner.sizing.ask import Ask
from planner.sizing.rate import Rate

__all__ = ["Ask", "Rate"]

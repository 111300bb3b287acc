"""Explanations: why no layout fits, why a plan wins, and what would change that."""

from planner.planning.explanation.ask import is_legal
from planner.planning.explanation.contradictions import as_error, contradiction
from planner.planning.explanation.flow import explain

__all__ = ["as_error", "contradiction", "explain", "is_legal"]

"""Explanations: why no layout fits, why a plan wins, and what would change that."""

from planner.explain.ask import is_legal
from planner.explain.flow import explain
from planner.explain.together import as_error, contradiction

__all__ = ["as_error", "contradiction", "explain", "is_legal"]

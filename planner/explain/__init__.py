"""Why infeasible, why this plan and not that one, and what would change it."""

from planner.explain.case import Case
from planner.explain.flow import explain

__all__ = ["Case", "explain"]

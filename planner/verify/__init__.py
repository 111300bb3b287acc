"""Checks a plan again: no solver, no table, no graph, only the operators' prices."""

from planner.verify.plan import violations

__all__ = ["violations"]

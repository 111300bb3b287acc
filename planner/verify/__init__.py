"""Second check of a plan, from operator prices alone: no solver, table or graph."""

from planner.verify.plan import violations

__all__ = ["violations"]

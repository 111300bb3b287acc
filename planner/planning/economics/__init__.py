"""From step time to money: tokens, time, interruptions, cost and energy of a run."""

from planner.planning.economics.plans import Planned, run_of, with_run
from planner.planning.economics.ramp import stretches_of
from planner.planning.economics.run import whole_run
from planner.planning.economics.stretches import Stretch
from planner.planning.economics.terms import RunTerms, Term, run_terms

__all__ = [
    "Planned",
    "RunTerms",
    "Stretch",
    "Term",
    "run_of",
    "run_terms",
    "stretches_of",
    "whole_run",
    "with_run",
]

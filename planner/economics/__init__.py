"""From step time to money: tokens, time, interruptions, cost and energy of a run."""

from planner.economics.run import whole_run
from planner.economics.stretches import Stretch
from planner.economics.terms import RunTerms, Term, run_terms

__all__ = ["RunTerms", "Stretch", "Term", "run_terms", "whole_run"]

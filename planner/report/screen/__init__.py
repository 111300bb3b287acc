"""An answer on one screen: a verdict, then what a reader decides by."""

from planner.report.screen.answers import PhaseAnswer, screen
from planner.report.screen.verdict import planless, run_words, verdict

__all__ = ["PhaseAnswer", "planless", "run_words", "screen", "verdict"]

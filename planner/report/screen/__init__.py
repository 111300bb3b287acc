"""An answer on one screen: a verdict, then what a reader decides by."""

from planner.report.screen.answers import PhaseAnswer, opening, quiet_lines, screen
from planner.report.screen.verdict import planless, verdict

__all__ = ["PhaseAnswer", "opening", "planless", "quiet_lines", "screen", "verdict"]

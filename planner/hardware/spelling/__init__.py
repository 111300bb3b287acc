"""People's spelling of GPUs and networks, read into clusters of the catalog."""

from planner.hardware.spelling.fleet import EXAMPLES, Fleet, read_fleet
from planner.hardware.spelling.words import SpellingError, UnknownNetworkError

__all__ = ["EXAMPLES", "Fleet", "SpellingError", "UnknownNetworkError", "read_fleet"]

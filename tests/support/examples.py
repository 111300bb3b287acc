"""Examples that a property test draws: a tenth in the fast suite, all in the gate."""

import os

ALL = os.environ.get("HYPOTHESIS_PROFILE", "fast") != "fast"
"""The gate sets the profile ``thorough``."""


def examples(most: int) -> int:
    """Examples of a test: as many as the gate draws, or a tenth, but three. [1]."""
    return most if ALL else max(-(-most // 10), min(most, 3))

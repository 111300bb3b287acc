"""Examples that a property test draws: few in the fast suite, all in the gate."""

import os

ALL = os.environ.get("HYPOTHESIS_PROFILE", "fast") != "fast"
"""The gate sets the profile ``thorough``."""


def examples(most: int) -> int:
    """Examples of a test: as many as the gate draws, or a twentieth. [1]."""
    return most if ALL else -(-most // 20)

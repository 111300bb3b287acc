"""Examples that a test draws: a fortieth in the fast suite, an eighth in the gate."""

import os

SHARES = {"fast": 40, "gate": 8, "thorough": 1, "explore": 1}
"""Divisor of the examples of each profile. [1]"""
SHARE = SHARES[os.environ.get("HYPOTHESIS_PROFILE", "fast")]


def examples(most: int) -> int:
    """Examples of a test that draws so many under the profile ``thorough``. [1]."""
    return -(-most // SHARE)

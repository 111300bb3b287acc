"""Objectives in words, each in its own unit."""

from typing import Literal

from planner.specs.answer.result import Objective

UNITS = {
    "throughput": "tokens/s",
    "cost": "USD per million tokens",
    "energy": "J per token",
    "memory": "GiB",
}
BEST = {
    "throughput": "fastest",
    "cost": "cheapest",
    "energy": "one of least energy",
    "memory": "one of least memory, and then the fastest,",
}
"""The best plan by objective. [text]"""


def amount_words(objective: Objective, which: Literal["value", "bound"]) -> str:
    """Value or bound of an objective with its unit."""
    amount: float = getattr(objective, which)
    small = objective.name != "throughput"
    shown = f"{amount:,.4g}" if small else f"{amount:,.1f}"
    return f"{shown} {UNITS.get(objective.name, '')}"

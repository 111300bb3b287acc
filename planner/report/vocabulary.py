"""Names of causes and categories; verdicts, odds and objectives in words."""

from typing import Literal

from planner.document.blocks import Mood
from planner.specs.answer.estimate import WAIT_WORDS, MemoryEstimate, Verdict
from planner.specs.answer.result import Objective
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import short_layout

CAUSES = {
    "compute": "compute",
    "tp_comm": "tensor-parallel communication",
    "cp_comm": "context-parallel communication",
    "ep_comm": "expert all-to-all",
    "pp_comm": "pipeline transfers",
    "dp_comm": "data-parallel communication",
    "bubble": "pipeline bubble",
    "recompute": "recompute",
    "optimizer": "optimizer",
    "straggler": "straggler",
    "other": "other",
    **WAIT_WORDS,
}
"""Field of the time breakdown to its name in a report."""
CATEGORIES = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "transient",
    "communication",
    "fragmentation",
    "context",
)
"""Memory categories in the order of a report."""
MOODS: dict[Verdict, Mood] = {"fits": "good", "at-risk": "warn", "oom": "bad"}
"""Verdict to the mood of its number."""
CERTAIN = 0.99
"""Probability above which no more is told. [1]"""


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


def row_mood(verdict: Verdict | None) -> Mood:
    """Mood of a row on a plan: none where the plan fits."""
    return "" if verdict in {None, "fits"} else MOODS[verdict]


def layout_line(layout: Layout) -> str:
    """The short form with room to break a line in; `--layout` reads it in quotes."""
    return short_layout(layout).replace(",", ", ")


def odds_words(memory: MemoryEstimate) -> str:
    """Probability that a plan at risk does not fit, in words.

    Returns:
        For example `14% likely not to fit`; empty where no risk is told. [text]
    """
    if memory.verdict != "at-risk" or memory.oom_probability is None:
        return ""
    return f"{memory.oom_probability:.0%} likely not to fit"


def host_words(memory: MemoryEstimate) -> str:
    """Needed and available host memory and NVMe of the fullest node, in words.

    Returns:
        The end of a sentence, empty where all stays on the GPUs. [text]
    """
    host = memory.host
    if host is None:
        return ""

    def part(needed: float, there: float | None) -> str:
        known = "an unknown size" if there is None else f"{there:,.1f} GiB"
        return f"{needed:,.1f} GiB of {known}"

    words = f"; host {part(host.needed_gib, host.available_gib)} a node"
    if not host.nvme_needed_gib:
        return words
    return f"{words}, NVMe {part(host.nvme_needed_gib, host.nvme_available_gib)}"


def likely_words(chance: float) -> str:
    """Probability that a layout is slower."""
    if chance > CERTAIN:
        return f"over {CERTAIN:.0%} likely"
    return f"{max(chance, 1 - CERTAIN):.0%} likely"


def amount_words(objective: Objective, which: Literal["value", "bound"]) -> str:
    """Value or bound of an objective with its unit."""
    amount: float = getattr(objective, which)
    small = objective.name != "throughput"
    shown = f"{amount:,.4g}" if small else f"{amount:,.1f}"
    return f"{shown} {UNITS.get(objective.name, '')}"

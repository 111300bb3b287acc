"""The first sentence of an answer: whether a job fits, its step and its run."""

from collections.abc import Sequence

from planner.report.heading import Heading
from planner.report.sections.run import run_rows, short
from planner.report.sections.ties import risk_limit
from planner.report.vocabulary import odds_words
from planner.specs.answer.estimate import Estimate, Interval, MemoryEstimate
from planner.specs.answer.result import Result
from planner.specs.answer.run import Run

_CHANCES = (
    (0.25, "probably fits"),
    (0.75, "may not fit"),
    (1.0, "likely does not fit"),
)
"""Probability that a run does not fit to words. [1]"""
ROOM = 0.01
"""Probability that a run does not fit, under which there is room to spare where the
interval of its memory ends below the card's, too; ours. [1]"""


def verdict(
    title: Heading, estimates: Sequence[tuple[str, Estimate]], run: Run | None = None
) -> str:
    """Say how a job fits, how long a step takes, and the run.

    Args:
        title: Model and machine. [-]
        estimates: Name and estimate of each phase; an empty name without phases. [-]
        run: The whole run, None where no tokens are known. [-]
    """
    worst = max((its.memory for _, its in estimates), key=_chance)
    steps = ", ".join(_step(name, its.step_time_s) for name, its in estimates)
    return f"{title.model} {_fit(worst, title.on)}: {steps}{run_words(run)}"


def planless(title: Heading, result: Result) -> str:
    """Say that a search found no plan."""
    if result.status == "infeasible" and result.fastest is not None:
        risk = risk_limit(result)
        return (
            f"{title.model} may not fit {title.on}: every layout runs out of memory in "
            f"over {risk:.0%} of cases, the fastest in "
            f"{result.fastest.oom_probability:.0%}"
        )
    if result.status == "infeasible":
        count = f"none of {result.search.space:,} legal layouts does"
        return f"{title.model} does not fit {title.on}: {count}"
    return f"No plan yet of {title.model} on {title.on}: the search ended too early"


def run_words(run: Run | None) -> str:
    """Time and tokens of a run, as the end of a sentence.

    Args:
        run: The run, or None. [-]

    Returns:
        For example `, 54.0 days (33.0 to 88.4) for 15.6T tokens`. [text]
    """
    if run is None:
        return ""
    return f", {dict(run_rows(run))['time']} for {short(run.tokens)} tokens"


def _step(name: str, step: Interval) -> str:
    """Step time of a phase with its interval."""
    value, low, high = (three_digits(x) for x in (step.value, step.low, step.high))
    return f"{value} s a step{f' of {name}' if name else ''} ({low} to {high})"


def three_digits(seconds: float) -> str:
    """A time in three digits, or in more where it is long.

    Args:
        seconds: The time. [s]
    """
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:#.3g}"


def _chance(memory: MemoryEstimate) -> tuple[int, float]:
    """Order of memories, the worst last."""
    verdicts = ("fits", "at-risk", "oom")
    return verdicts.index(memory.verdict), memory.oom_probability or 0.0


def _fit(memory: MemoryEstimate, on: str) -> str:
    if memory.verdict == "fits":
        top = memory.peak_device_gib.high
        roomy = (memory.oom_probability or 0.0) < ROOM and top < memory.capacity_gib
        return f"fits {on}{' with room to spare' if roomy else ''}"
    if memory.verdict == "oom":
        needed = memory.peak_device_gib.value
        return f"does not fit {on} ({needed:,.1f} of {memory.capacity_gib:.1f} GiB)"
    chance = memory.oom_probability
    if chance is None:
        return f"may not fit {on}"
    words = next(words for most, words in _CHANCES if chance <= most)
    return f"{words} {on} ({odds_words(memory)})"

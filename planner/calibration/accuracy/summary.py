"""The figures of a validation: errors, groups, out-of-memory calls, ranking."""

from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from planner.calibration.accuracy.errors import (
    Accuracy,
    Errors,
    Gains,
    accuracy,
    by_key,
    macro_accuracy,
)
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.ranking import Ranking, macro_ranking, ranking, sweeps

_CONTEXTS = ((4096, "up to 4k"), (8192, "8k"), (32768, "16k to 32k"))
_SCALES = ((8, "1 to 8"), (64, "9 to 64"), (512, "65 to 512"), (4096, "513 to 4096"))
_LONGER, _LARGER = "over 32k", "over 4096"
_BUCKETS = [*(n for _, n in _CONTEXTS), _LONGER, *(n for _, n in _SCALES), _LARGER]
_UNKNOWN = "unknown"


class OomCounts(BaseModel):
    """Verdicts on rows that ran, and on rows that did not fit."""

    model_config = ConfigDict(frozen=True)

    true_positive: int = 0
    """Did not fit, called oom or at-risk. [1]"""
    false_positive: int = 0
    """Ran, called oom. [1]"""
    at_risk_ran: int = 0
    """Ran, called at-risk. [1]"""
    true_negative: int = 0
    """Ran, called fits. [1]"""
    false_negative: int = 0
    """Did not fit, called fits. [1]"""


class Macro(Accuracy):
    """Averages over sources; each `n` and `groups` counts sources."""

    ranking: Ranking = Ranking()


class Summary(BaseModel):
    """Figures of the rows that count."""

    model_config = ConfigDict(frozen=True)

    step_time: Errors
    memory: Errors
    oom: OomCounts
    ranking: Ranking
    claimed_gain: Gains
    """Gains that plans claim over measured layouts, where the jobs were planned."""
    unsupported: int
    """Rows that count and could not be priced. [1]"""
    invalid: int
    """Rows that could not be read. [1]"""
    rows: int
    """Rows that count, priced or not. [1]"""
    suspect: int
    """Rows that are listed and not counted. [1]"""
    macro: Macro
    by_source: dict[str, Accuracy]
    by_gpu: dict[str, Accuracy]
    by_framework: dict[str, Accuracy]
    by_stack: dict[str, Accuracy]
    by_architecture: dict[str, Accuracy]
    by_context: dict[str, Accuracy]
    by_scale: dict[str, Accuracy]


def is_v100(row: Outcome) -> bool:
    """Tell if a row ran on V100, whose measurements are summarised apart.

    Returns:
        True for any V100. [-]
    """
    return "v100" in row.gpu.lower()


def summarise(outcomes: Iterable[Outcome]) -> Summary:
    """Every figure of a set of outcomes; suspect rows are counted as such only.

    Args:
        outcomes: Rows, shape (rows,). [-]
    """
    rows = tuple(outcomes)
    counted = [row for row in rows if row.counted and row.status != "invalid"]
    priced = [row for row in counted if row.status == "ok"]
    overall, average, found = accuracy(priced), macro_accuracy(priced), sweeps(priced)
    groups = {name: _grouped(priced, key) for name, key in GROUPINGS.items()}
    return Summary(
        step_time=overall.step_time,
        memory=overall.memory,
        oom=oom_counts(priced),
        ranking=ranking(found),
        claimed_gain=overall.claimed_gain,
        unsupported=sum(row.status == "unsupported" for row in counted),
        invalid=sum(row.status == "invalid" for row in rows),
        rows=len(counted),
        suspect=sum(not row.counted and row.status != "invalid" for row in rows),
        macro=Macro(**dict(average), ranking=macro_ranking(found)),
        **groups,
    )


def oom_counts(priced: Iterable[Outcome]) -> OomCounts:
    """Verdicts against what happened; positive is oom or at-risk.

    Args:
        priced: Rows with a verdict, shape (rows,). [-]
    """
    rows = [row for row in priced if row.verdict]
    ran = [row.verdict for row in rows if not row.oom]
    failed = [row.verdict for row in rows if row.oom]
    return OomCounts(
        true_positive=len(failed) - failed.count("fits"),
        false_positive=ran.count("oom"),
        at_risk_ran=ran.count("at-risk"),
        true_negative=ran.count("fits"),
        false_negative=failed.count("fits"),
    )


def _grouped(
    priced: Sequence[Outcome], key: Callable[[Outcome], str]
) -> dict[str, Accuracy]:
    """Errors of each group that has any, by name."""
    groups = by_key(priced, key)
    figures = {name: accuracy(groups[name]) for name in sorted(groups, key=_place)}
    return {n: its for n, its in figures.items() if its.step_time.n or its.memory.n}


def _place(name: str) -> tuple[int, str]:
    """Buckets in order of size, other names by the alphabet."""
    return (_BUCKETS.index(name), "") if name in _BUCKETS else (len(_BUCKETS), name)


def _context(row: Outcome) -> str:
    return _bucket(row.seq_len, _CONTEXTS, _LONGER)


def _scale(row: Outcome) -> str:
    return _bucket(row.gpus, _SCALES, _LARGER)


def _bucket(value: int, bounds: Sequence[tuple[int, str]], beyond: str) -> str:
    if value <= 0:
        return _UNKNOWN
    return next((name for bound, name in bounds if value <= bound), beyond)


GROUPINGS: dict[str, Callable[[Outcome], str]] = {
    "by_gpu": lambda row: row.gpu or _UNKNOWN,
    "by_framework": lambda row: row.framework or _UNKNOWN,
    "by_stack": lambda row: row.stack or _UNKNOWN,
    "by_architecture": lambda row: "moe" if row.moe else "dense",
    "by_context": _context,
    "by_scale": _scale,
    "by_source": lambda row: row.source or _UNKNOWN,
}
"""Field of a summary to the name that a row has in that breakdown."""

"""Quality of the ranking of one job's layouts: tau, regret and hits in sweeps."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict

from planner.evidence.accuracy.errors import by_key
from planner.evidence.accuracy.outcome import Outcome

SMALLEST_SWEEP = 4
"""Layouts that a sweep needs before its ranking says anything. [1]"""
_SHORT_LIST = 3


class Sweep(BaseModel):
    """The ranking of one job's layouts."""

    model_config = ConfigDict(frozen=True)

    key: str
    source: str
    layouts: int
    """Measured layouts. [1]"""
    kendall_tau: float
    """1 for the measured order, -1 for its reverse. [1]"""
    top1_regret: float
    """Measured time of our first over the best measured, minus 1. [1]"""
    top3_hit: bool
    """The best measured is among our first three."""


class Ranking(BaseModel):
    """Means over sweeps; a mean of none is null."""

    model_config = ConfigDict(frozen=True)

    groups: int = 0
    """Sweeps, or for an average over sources the sources. [1]"""
    kendall_tau: float | None = None
    top1_regret: float | None = None
    top3_hit_rate: float | None = None


def sweeps(outcomes: Iterable[Outcome]) -> tuple[Sweep, ...]:
    """The ranking within every job that was measured under enough layouts.

    Rows of one layout count once, with their median measured time. A job whose
    layouts all took the same time has no order to find and is left out.

    Args:
        outcomes: Rows to count, shape (rows,). [-]

    Returns:
        One entry for each sweep, shape (sweeps,). [-]
    """
    timed = [row for row in outcomes if row.sweep and row.step_error is not None]
    groups = by_key(timed, lambda row: f"{row.source}: {row.sweep}")
    found = (_sweep(rows) for rows in groups.values())
    return tuple(sweep for sweep in found if sweep is not None)


def _sweep(rows: Sequence[Outcome]) -> Sweep | None:
    predicted, measured = _layouts(rows)
    if len(measured) < SMALLEST_SWEEP or np.ptp(measured) == 0:
        return None
    order = np.argsort(predicted, kind="stable")
    best = measured.min()
    return Sweep(
        key=rows[0].sweep,
        source=rows[0].source,
        layouts=len(measured),
        kendall_tau=kendall_tau(predicted, measured),
        top1_regret=float(measured[order[0]] / best - 1),
        top3_hit=bool(measured[order[:_SHORT_LIST]].min() == best),
    )


def _layouts(
    rows: Sequence[Outcome],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predicted and median measured time of each layout. [s], shape (layouts,)."""
    same = by_key(rows, lambda row: f"{row.layout} {row.predicted_step_s}")
    predicted = [group[0].predicted_step_s for group in same.values()]
    measured = [np.median([r.measured_step_s for r in g]) for g in same.values()]
    return np.array(predicted, dtype=float), np.array(measured, dtype=float)


def kendall_tau(left: ArrayLike, right: ArrayLike) -> float:
    """Kendall's tau-b, the rank correlation that discounts ties.

    Over all pairs of members::

        tau = (concordant - discordant) / sqrt(untied_left untied_right)

    Args:
        left: Values, shape (n,). [any]
        right: Values of the same members, shape (n,). [any]

    Returns:
        Between -1 and 1; 0 where one side is all ties. [1]

    References:
        M. G. Kendall, "The treatment of ties in ranking problems", Biometrika
        33(3), 1945, https://doi.org/10.1093/biomet/33.3.239
    """
    a, b = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    above = np.triu_indices(a.size, k=1)
    signs_a = np.sign(np.subtract.outer(a, a))[above]
    signs_b = np.sign(np.subtract.outer(b, b))[above]
    untied = np.abs(signs_a).sum() * np.abs(signs_b).sum()
    return float((signs_a * signs_b).sum() / np.sqrt(untied)) if untied else 0.0


def ranking(found: Iterable[Sweep]) -> Ranking:
    """Means over sweeps, every sweep the same weight.

    Args:
        found: Sweeps, shape (sweeps,). [-]

    Returns:
        Number of the sweeps, and means of their figures. [-]
    """
    return _mean([_of_sweep(sweep) for sweep in found])


def macro_ranking(found: Iterable[Sweep]) -> Ranking:
    """Means over sources, every source the same weight.

    Args:
        found: Sweeps, shape (sweeps,). [-]

    Returns:
        The number of sources, and the means of their means. [-]
    """
    sources: dict[str, list[Ranking]] = {}
    for sweep in found:
        sources.setdefault(sweep.source, []).append(_of_sweep(sweep))
    return _mean([_mean(each) for each in sources.values()])


def _of_sweep(sweep: Sweep) -> Ranking:
    return Ranking(
        groups=1,
        kendall_tau=sweep.kendall_tau,
        top1_regret=sweep.top1_regret,
        top3_hit_rate=float(sweep.top3_hit),
    )


def _mean(each: Sequence[Ranking]) -> Ranking:
    if not each:
        return Ranking()
    figures = Ranking.model_fields.keys() - {"groups"}
    means = {name: float(np.mean([getattr(r, name) for r in each])) for name in figures}
    return Ranking(groups=len(each), **means)

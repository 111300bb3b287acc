"""Quality of the ranking of one job's layouts: pairs, tau, regret, hits in sweeps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

from pydantic import BaseModel, ConfigDict

from planner.calibration.accuracy.errors import by_key
from planner.calibration.accuracy.outcome import Outcome
from planner.planning.ties import robust_choice, tied
from planner.specs.answer.estimate import TimeBreakdown

SMALLEST_SWEEP = 4
"""Layouts that a sweep needs before its ranking says anything. [1]"""
REPEATS = 0.03
"""Difference of two measured steps within which a repeat may turn their order. [1]"""
_SHORT_LIST = 3


class Sweep(BaseModel):
    """The ranking of one job's layouts."""

    model_config = ConfigDict(frozen=True)

    key: str
    source: str
    layouts: int
    """Measured layouts. [1]"""
    pairs: int
    """Pairs of layouts whose measured steps no repeat explains. [1]"""
    pairs_right: float
    """Share of those pairs that are predicted in the measured order. [1]"""
    kendall_tau: float
    """1 for the measured order of those pairs, -1 for its reverse. [1]"""
    top1_regret: float
    """Measured time of our first over the best measured, minus 1. [1]"""
    choice_regret: float
    """Measured time of our choice over the best measured, minus 1. A plan by default
    is the simplest of those that tie with our first. [1]"""
    top3_hit: bool
    """The best measured is among our first three."""
    tied_hit: bool
    """The best measured is our first, or tied with our first."""


class Ranking(BaseModel):
    """Means over sweeps; a mean of none is null."""

    model_config = ConfigDict(frozen=True)

    groups: int = 0
    """Sweeps, or for an average over sources the sources. [1]"""
    pairs_right: float | None = None
    """Share of all pairs; for an average over sources the mean of their shares. [1]"""
    kendall_tau: float | None = None
    top1_regret: float | None = None
    choice_regret: float | None = None
    top3_hit_rate: float | None = None
    tied_hit_rate: float | None = None


@dataclass(frozen=True)
class Order:
    """Two layouts of one job whose measured steps differ beyond repeats.

    Attributes:
        source: Publication. [text]
        difference: Slower over faster measured step, minus 1. [1]
        agrees: 1 for the measured order, -1 for the reverse, 0 for one predicted
            time. [1]
    """

    source: str
    difference: float
    agrees: int


def sweeps(outcomes: Iterable[Outcome]) -> tuple[Sweep, ...]:
    """The ranking within every job that was measured under enough layouts.

    Rows of one layout count once, with their median measured time. A job whose
    layouts all took the same time, but for repeats, has no order and is left out.

    Args:
        outcomes: Rows to count, shape (rows,). [-]

    Returns:
        One entry for each sweep, shape (sweeps,). [-]
    """
    found = map(_sweep, _by_sweep(outcomes))
    return tuple(sweep for sweep in found if sweep is not None)


def orders(outcomes: Iterable[Outcome]) -> list[Order]:
    """Pairs of layouts that a ranking has to get right, within every sweep.

    Args:
        outcomes: Rows to count, shape (rows,). [-]

    Returns:
        Pairs whose measured steps differ by more than REPEATS, shape (pairs,). [-]
    """
    return [pair for layouts in _by_sweep(outcomes) for pair in _orders(layouts)]


@dataclass(frozen=True)
class _Layout:
    """A layout with the median of its measured steps. [s]."""

    row: Outcome
    step_s: float
    measured: float

    @property
    def causes_s(self) -> TimeBreakdown:
        """The predicted step by cause; one cause where none is known. [s]."""
        return self.row.causes_s or TimeBreakdown(other=self.step_s)

    @property
    def complexity(self) -> tuple[int, ...]:
        """Axes, then distances from the framework's defaults. [1]."""
        return self.row.complexity

    @property
    def free_share(self) -> float:
        """Free memory of the fullest GPU, over all of it; 0 where unknown. [1]."""
        if self.row.predicted_device_gib is None or not self.row.capacity_gib:
            return 0.0
        return 1 - self.row.predicted_device_gib / self.row.capacity_gib


def _by_sweep(outcomes: Iterable[Outcome]) -> list[list[_Layout]]:
    """Layouts of every job that was measured under enough, first predicted first."""
    timed = [row for row in outcomes if row.sweep and row.step_error is not None]
    groups = by_key(timed, lambda row: f"{row.source}: {row.sweep}")
    found = (_layouts(rows) for rows in groups.values())
    return [layouts for layouts in found if len(layouts) >= SMALLEST_SWEEP]


def _layouts(rows: Sequence[Outcome]) -> list[_Layout]:
    same = by_key(rows, lambda row: f"{row.layout} {row.predicted_step_s}").values()
    found = [
        _Layout(
            group[0],
            step_s=group[0].predicted_step_s or 0.0,
            measured=median(row.measured_step_s or 0.0 for row in group),
        )
        for group in same
    ]
    return sorted(found, key=lambda one: one.step_s)


def _orders(layouts: Sequence[_Layout]) -> list[Order]:
    found = []
    for one, other in combinations(layouts, 2):
        fast, slow = sorted((one.measured, other.measured))
        if slow > (1 + REPEATS) * fast:
            rises = 1 if one.measured == fast else -1
            agrees = rises if one.step_s < other.step_s else 0
            found.append(Order(one.row.source, slow / fast - 1, agrees))
    return found


def _sweep(layouts: Sequence[_Layout]) -> Sweep | None:
    pairs = _orders(layouts)
    if not pairs:
        return None
    first, best = layouts[0], min(layouts, key=lambda one: one.measured)
    among = tied(layouts)
    choice = layouts[robust_choice(layouts, among)]
    return Sweep(
        key=first.row.sweep,
        source=first.row.source,
        layouts=len(layouts),
        pairs=len(pairs),
        pairs_right=fmean(pair.agrees > 0 for pair in pairs),
        kendall_tau=fmean(pair.agrees for pair in pairs),
        top1_regret=first.measured / best.measured - 1,
        choice_regret=choice.measured / best.measured - 1,
        top3_hit=best in layouts[:_SHORT_LIST],
        tied_hit=any(layouts[at] is best for at in among),
    )


def ranking(found: Iterable[Sweep]) -> Ranking:
    """Means over sweeps, every sweep the same weight; pairs over all pairs.

    Args:
        found: Sweeps, shape (sweeps,). [-]
    """
    each = list(found)
    pairs = sum(sweep.pairs for sweep in each)
    right = sum(sweep.pairs * sweep.pairs_right for sweep in each)
    mean = _mean([_of_sweep(sweep) for sweep in each])
    return mean.model_copy(update={"pairs_right": right / pairs}) if each else mean


def macro_ranking(found: Iterable[Sweep]) -> Ranking:
    """Means over sources, every source the same weight.

    Args:
        found: Sweeps, shape (sweeps,). [-]
    """
    sources: dict[str, list[Sweep]] = {}
    for sweep in found:
        sources.setdefault(sweep.source, []).append(sweep)
    return _mean([ranking(each) for each in sources.values()])


def _of_sweep(sweep: Sweep) -> Ranking:
    return Ranking(
        groups=1,
        pairs_right=sweep.pairs_right,
        kendall_tau=sweep.kendall_tau,
        top1_regret=sweep.top1_regret,
        choice_regret=sweep.choice_regret,
        top3_hit_rate=float(sweep.top3_hit),
        tied_hit_rate=float(sweep.tied_hit),
    )


def _mean(each: Sequence[Ranking]) -> Ranking:
    if not each:
        return Ranking()
    figures = Ranking.model_fields.keys() - {"groups"}
    means = {name: fmean(getattr(r, name) for r in each) for name in figures}
    return Ranking(groups=len(each), **means)

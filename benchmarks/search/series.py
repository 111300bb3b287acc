"""Best plan and bound that a search knew at each moment."""

from collections.abc import Sequence
from time import perf_counter

from planner.search.outcome import Progress

Point = tuple[float, float | None, float | None]
"""Time since the process began [s], best step so far [s], bound on any step [s]."""
FINEST = 1e-4
"""Change of the gap that is worth a point. [1]"""
MOST_POINTS = 60
"""Points that a series keeps. [1]"""


class Watch:
    """Notes a search's reports of progress, ten times a second at most.

    Nothing is reported before all candidates are priced and bounded, and nothing
    during one call of the solver.
    """

    def __init__(self, started: float) -> None:
        self.started = started
        self.points: list[Point] = []

    def __call__(self, progress: Progress) -> None:
        """Look at one report.

        Args:
            progress: Best plan and bound of the search.
        """
        self.note(perf_counter() - self.started, progress.incumbent_s, progress.bound_s)

    def note(self, now: float, best: float | None, bound: float | None) -> None:
        """Keep a moment, unless plan and bound are as at the last kept moment.

        Args:
            now: Time since the process began. [s]
            best: Step of the best plan so far, if there is a plan. [s]
            bound: Lower bound on the step of any plan, if known. [s]
        """
        if not self.points or (best, bound) != self.points[-1][1:]:
            self.points.append((now, best, bound))


def gap_of(point: Point) -> float | None:
    """Share by which the best plan may still be beaten.

    Args:
        point: One moment.

    Returns:
        ``1 - bound / best``; none without a plan. [1]
    """
    _, best, bound = point
    if best is None or bound is None:
        return None
    return max(0.0, 1.0 - bound / best)


def gap_at(series: Sequence[Point], time: float) -> float | None:
    """The gap at a moment.

    Args:
        series: In order of time.
        time: Time since the process began. [s]

    Returns:
        Gap of the last point by that time; none without a plan. [1]
    """
    known = [point for point in series if point[0] <= time]
    return gap_of(known[-1]) if known else None


def proof(series: Sequence[Point]) -> float | None:
    """Time at which the bound met the best plan.

    Args:
        series: In order of time.

    Returns:
        Time since the process began; none where the bound never met it. [s]
    """
    return next((point[0] for point in series if gap_of(point) == 0.0), None)


def thinned(series: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """Curve of a series with fewer points.

    The first plan, the last moment and every change of the gap by a step stay. The
    step doubles until few enough points are left.

    Args:
        series: In order of time.
        most: Most points to keep. [1]

    Returns:
        Points of the series. [-]
    """
    step = FINEST
    kept = _changes(series, step)
    while len(kept) > most:
        step *= 2
        kept = _changes(series, step)
    return kept


def _changes(series: Sequence[Point], step: float) -> list[Point]:
    """Points whose gap differs by a step from the gap of the last point kept."""
    kept: list[Point] = []
    for point in series[:-1]:
        last, gap = gap_of(kept[-1]) if kept else None, gap_of(point)
        plan = gap is not None and last is None
        if plan or not kept or _apart(gap, last) >= step:
            kept.append(point)
    return [*kept, *series[-1:]]


def _apart(gap: float | None, last: float | None) -> float:
    return abs(gap - last) if gap is not None and last is not None else 0.0

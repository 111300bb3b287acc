"""Factors that a user's own rows give: one for each measured job, one for all others.

A row's log ratio of measured over predicted is the sum of what its source, its job and
the row itself have of their own::

    y = s + j + e,    sd of s, j, e = those of spreads()

A measured job takes what its own rows say. Another job shares s alone, whose best
guess is a fraction of what the measured jobs say.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from planner.calibration.fitting.fit_columns import Floats
from planner.hardware.reading.yaml_text import parse_yaml

MOST = 1.5
"""Factor beyond which one row alone pulls no job; n rows pull its n-th power. [1]"""
FREEDOM = 4.0
"""Degrees of freedom of a peak's error, the choice of Lange et al. [1]"""
ROUNDS = 100
"""Rounds that the mode is sought for; the last ones move it by less than 1e-9. [1]"""
MAD = 1.48
"""Standard deviation over the median distance, of a normal error. [1]"""


class Spread(BaseModel):
    """Standard deviations of log(measured / predicted), by level."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: float = Field(ge=0)
    """Between sources. [1]"""
    job: float = Field(gt=0)
    """Between the jobs of a source. [1]"""
    row: float = Field(gt=0)
    """Between the rows of a job. [1]"""


class Spreads(BaseModel):
    """Spreads of step time, and of memory by what its counter counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    time: Spread
    allocated: Spread
    """Of tensors alone: layouts of a job differ more than sources do."""
    reserved: Spread
    """With the allocator's cache: sources differ more than layouts of a job do."""


@lru_cache
def spreads() -> Spreads:
    """Read the spreads that predictions had at first contact."""
    text = (files("planner.calibration.fitting") / "spreads.yaml").read_text()
    return Spreads.model_validate(parse_yaml(text))


def scatter(left: Floats) -> float:
    """Standard deviation of errors, by their median size.

    Args:
        left: Errors about their centre, shape (rows,). [1]

    Returns:
        Standard deviation; 0 for one row. [1]
    """
    return MAD * float(np.median(np.abs(left)))


def job_factor(logs: Floats, spread: Spread) -> float:
    """Log of the factor of a job that was measured.

    The median of the rows, shrunk by what the rows differ and by what is known of one
    row before it is measured. Each row is believed up to MOST::

        a = median(y) t^2 / (t^2 + scatter^2 / n)
        t^2 = source^2 + job^2

    Args:
        logs: log(measured / predicted) of the rows, shape (rows,). [1]
        spread: Spreads of the quantity. [1]
    """
    centre, n = float(np.median(logs)), len(logs)
    wide = spread.source**2 + spread.job**2
    apart = scatter(logs - centre) ** 2
    most = n * float(np.log(MOST))
    return float(np.clip(centre * wide / (wide + apart / n), -most, most))


def likeliest_factor(logs: Floats, spread: Spread) -> float:
    """Log of the factor of a job by peaks of which one may be odd.

    The mode of a normal prior and Student-t errors, found from the median on::

        a = sum(w y) / (sum(w) + row^2 / t^2),    t^2 = source^2 + job^2
        w = (nu + 1) / (nu + (y - a)^2 / row^2),    nu = FREEDOM

    Args:
        logs: log(measured / predicted) of the rows, shape (rows,). [1]
        spread: Spreads of the quantity. [1]

    References:
        K. L. Lange, R. J. A. Little and J. M. G. Taylor, "Robust statistical modeling
        using the t distribution", J. Am. Stat. Assoc. 84 (1989).
    """
    prior = spread.row**2 / (spread.source**2 + spread.job**2)
    found = float(np.median(logs))
    for _ in range(ROUNDS):
        far = (logs - found) / spread.row
        weights = (FREEDOM + 1) / (FREEDOM + far**2)
        found = float((weights * logs).sum() / (weights.sum() + prior))
    return found


def other_factor(jobs: Sequence[tuple[float, int]], spread: Spread) -> float:
    """Log of the factor of a job that was not measured.

    The best guess of what the source has of its own, shrunk as by James and Stein. No
    job pulls by more than the spread of jobs, and a mean within its standard error
    pulls nothing::

        x = mean of clip(a, -job, job) by weights w,    w = 1 / (job^2 + row^2 / n)
        s = x min(source^2 / (source^2 + v), max(1 - v / x^2, 0)),    v = 1 / sum(w)

    Returns:
        Log of the factor; 0 where no job was measured. [1]
    """
    if not jobs:
        return 0.0
    weights = [1 / (spread.job**2 + spread.row**2 / rows) for _, rows in jobs]
    capped = np.clip([log for log, _ in jobs], -spread.job, spread.job)
    mean, noise = float(np.average(capped, weights=weights)), 1 / sum(weights)
    kept = spread.source**2 / (spread.source**2 + noise)
    told = 1 - noise / mean**2 if mean else 0.0
    return mean * max(min(kept, told), 0.0)

"""Belief about the steps of plans: predictions, their shared errors, measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from planner.calibration.accuracy.ranking import REPEATS

Floats = NDArray[np.float64]
NOISE = REPEATS / (2 * 2**0.5)
"""Standard deviation of the log of a measured step. [1]

Two repeats differ by more than `REPEATS` in one case of twenty.
"""
MEDIAN = NormalDist().inv_cdf(0.75)
"""Median of the absolute error of a normal error. [standard deviations]"""
OFFSET = 1.0
"""Standard deviation of the log of an error that all plans share. [1]"""
TRUST = 4.0
"""Measured differences that the spread of published sweeps counts for. [1]"""


@dataclass(frozen=True)
class Predicted:
    """A plan that may be measured.

    Attributes:
        name: Name of the run. [text]
        causes_s: Predicted time of every cause of the step, shape (causes,). [s]
        risk: Probability that it runs out of memory, before any run. [1]
    """

    name: str
    causes_s: tuple[float, ...]
    risk: float = 0.0

    @property
    def step_s(self) -> float:
        """Predicted step. [s]."""
        return sum(self.causes_s)


@dataclass(frozen=True)
class Belief:
    """Logs of the steps as a joint normal distribution.

    Attributes:
        log_s: Mean of the log of each step [s], shape (plans,). [1]
        covariance: Covariance of these logs, shape (plans, plans). [1]
        spread: Median error of a comparison at a difference of one step. [1]
    """

    log_s: Floats
    covariance: Floats
    spread: float

    def gain(self, at: int, than: int) -> tuple[float, float]:
        """Gain of a plan over another."""
        cov = self.covariance
        variance = cov[at, at] + cov[than, than] - 2 * cov[at, than]
        mean = self.log_s[than] - self.log_s[at]
        return float(mean), float(np.sqrt(max(variance, 0.0)))


def believe(
    plans: Sequence[Predicted], measured: Mapping[str, float], *, spread: float
) -> Belief:
    """Predictions, corrected by what was measured of some plans.

    The errors of two plans differ as measured sweeps say, by time that differs between
    the plans, cause by cause. Plans that share causes share errors, so one measurement
    tells about all of them::

        var(e_a - e_b) = (spread / MEDIAN)^2 sum over causes |t_a - t_b| / T

    Such an error is a walk along every cause, which makes the covariance valid. An
    error that all plans share is left open by `OFFSET`. The spread itself follows what
    was measured, as if `TRUST` differences had been seen before.

    Args:
        plans: The plans, shape (plans,). [-]
        measured: Measured step of some of them, by name. [s]
        spread: Median error of a comparison at a difference of one step. [1]
    """
    causes = np.array([plan.causes_s for plan in plans])
    log_s = np.log(causes.sum(axis=1))
    shared = _walks(causes / np.exp(log_s.mean())) * (spread / MEDIAN) ** 2
    done = [at for at, plan in enumerate(plans) if plan.name in measured]
    if not done:
        return Belief(log_s, shared + OFFSET**2, spread)
    off = np.log([measured[plans[at].name] for at in done]) - log_s[done]
    times = _times(shared[np.ix_(done, done)], off)
    prior = shared * times + OFFSET**2
    seen = prior[np.ix_(done, done)] + NOISE**2 * np.eye(len(done))
    weights = np.linalg.solve(seen, prior[done]).T
    return Belief(
        log_s + weights @ off, prior - weights @ prior[done], spread * times**0.5
    )


def _walks(shares: Floats) -> Floats:
    """Covariance of walks that start at the first plan, shape (plans, plans)."""
    apart = np.abs(shares[:, None] - shares[None]).sum(axis=2)
    joined: Floats = (apart[:, :1] + apart[:1] - apart) / 2
    return joined


def _times(shared: Floats, off: Floats) -> float:
    """Variance of measured differences over the expected variance. [1]."""
    if len(off) < 2:
        return 1.0
    against = np.eye(len(off))[1:] - np.eye(len(off))[0]
    noise = NOISE**2 * np.eye(len(off))
    expected = against @ (shared + noise) @ against.T
    differences = against @ off
    seen = differences @ np.linalg.solve(expected, differences)
    return float((TRUST + seen) / (TRUST + len(differences)))

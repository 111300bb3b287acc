"""Fits the deviation of a stack on one GPU to a user's own measured steps.

One to three rows tell one factor on the step for each job that was measured, and a
smaller one for every other job (`factors`). From four rows on constants are freed too,
where rows that are left out say that it helps. The fit is least squares with a soft-L1
loss and bounds, around the shipped constants::

    min over a, c   sum_i rho((log measured_i - log T_i(c) - a) / noise)
                    + sum_k ((c_k - c_k0) / width_k)^2

The noise is what the rows scatter about one factor: at least that of repeats, at most
that of published rows of one job. A constant stays at its default unless the rows say
clearly more than its prior.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.calibration.fitting.factors import (
    job_factor,
    other_factor,
    scatter,
    spreads,
)
from planner.calibration.fitting.fit_columns import Floats
from planner.calibration.fitting.hierarchy import ridge
from planner.calibration.fitting.sensitivity import DOCUMENTED, Run, gradient, nudged
from planner.errors import BadInputError, install
from planner.job.calibration_file import Job, most
from planner.specs.frameworks.deviation import CONSTANTS, SECONDS, Constant, Deviation
from planner.specs.frameworks.profile import Profile

ONE_CLUSTER = 0.05
"""Scatter of the steps of one user's cluster about any smooth model. [1]"""
WIDTHS: dict[Constant, float] = {
    "clock": 0.15,
    "attention_rate": 0.2,
    "memory_traffic": 0.3,
    "latency": 0.5,
    "network": 0.3,
    "step_overhead": 0.05,
}
"""Width of the prior about each shipped constant: log factor [1], or [s]."""
FARTHEST = 4.0
"""Widths at which a fit stops. [1]"""
NARROWED = 0.7
"""Posterior over prior width above which rows say too little of a constant. [1]"""
ROUNDS = 3
"""Times that the model is made linear anew and solved. [1]"""
TINY = 1e-9
"""Room below a start that lies on its bound, which the solver wants. [s]"""
ENOUGH = 4
"""Rows from which constants may be freed beside the factor. [1]"""
WORTH = 0.01
"""Error of rows left out, with the factor alone, below which none is freed. [1]"""
GAIN = 0.75
"""Largest share of the factor's error that freed constants may leave. [1]"""
FOLDS = 10
"""Parts of which each is left out once. [1]"""
REPEATS = 0.03
"""Scatter of one run that is measured again, at least. [1]"""
CONFIDENCE_90 = 1.645
"""Half width of a 90 % interval. [standard deviations]"""


@dataclass(frozen=True)
class Constancy:
    """Fit of one constant, or the reason against a fit.

    Attributes:
        name: The constant. [text]
        default: Shipped value of the constant. [1] or [s]
        value: Fitted; the default where it was refused. [1] or [s]
        low: Lower end of the 90 % confidence interval. [1] or [s]
        high: Upper end of the 90 % confidence interval. [1] or [s]
        refused: Reason why it was not fitted; empty if it was. [text]
    """

    name: Constant
    default: float
    value: float
    low: float
    high: float
    refused: str = ""


@dataclass(frozen=True)
class Own:
    """The factor of some jobs, with a fit's constants.

    Attributes:
        factor: Measured over predicted step. [1]
        low: Lower end of the factor's 90 % confidence interval. [1]
        high: Upper end of the factor's 90 % confidence interval. [1]
        rows: Measured steps. [1]
        residual: Median relative error that remains. [1]
    """

    factor: float
    low: float
    high: float
    rows: int
    residual: float


@dataclass(frozen=True)
class Calibrated:
    """The fit of one stack on one GPU.

    Attributes:
        jobs: Factors of the jobs that were measured. [-]
        others: Factor of every other job. [-]
        constants: All six, in the order of CONSTANTS. [-]
        rows: Measured steps. [1]
        before: Median relative error as shipped. [1]
        residual: Median relative error as fitted. [1]
    """

    jobs: dict[Job, Own]
    others: Own
    constants: tuple[Constancy, ...]
    rows: int
    before: float
    residual: float

    @property
    def fitted(self) -> dict[Constant, float]:
        """The constants that were not refused. [1] or [s]."""
        return {one.name: one.value for one in self.constants if not one.refused}


def solver() -> Any:
    """scipy's optimizers, which the base install does without."""
    try:
        import scipy.optimize  # noqa: PLC0415  # an extra, for two commands only
    except ImportError as error:
        raise BadInputError(
            f"calibrate and tune need scipy: {install('calibrate')}"
        ) from error
    return scipy.optimize


def calibrate(runs: Sequence[Run], shipped: Profile) -> Calibrated:
    """Fit the factor, and the constants that some runs of one stack can tell.

    Returns:
        The fit, with confidence intervals; factors of 1 without runs. [-]
    """
    before = np.array([run.log_ratio(DOCUMENTED) for run in runs])
    free, refused = _freed(runs, before)
    logs, spread = _solve(runs, free) if free else (np.empty(0), np.empty(0))
    at = _deviation(free, logs)
    left = np.array([run.log_ratio(at) for run in runs]) if free else before
    default = {name: float(getattr(shipped, name)) for name in CONSTANTS}
    own = {
        name: (float(log), float(width))
        for name, log, width in zip(free, logs, spread, strict=True)
    }
    jobs, others, after = _factors([run.job for run in runs], left)
    return Calibrated(
        jobs,
        others,
        constants=tuple(
            _constancy(
                name, default[name], own.get(name, (0.0, 0.0)), refused.get(name, "")
            )
            for name in CONSTANTS
        ),
        rows=len(runs),
        before=_error(before),
        residual=_error(after),
    )


def _factors(jobs: Sequence[Job], left: Floats) -> tuple[dict[Job, Own], Own, Floats]:
    """Factors of the measured jobs and of others, and what remains of each row."""
    spread, after = spreads().time, left.copy()
    found: dict[Job, Own] = {}
    centres: list[tuple[float, int]] = []
    for job in dict.fromkeys(jobs):
        its = np.array([one == job for one in jobs])
        centre, rows = job_factor(left[its], spread), int(its.sum())
        after[its] -= centre
        centres.append((centre, rows))
        half = max(spread.row, scatter(after[its])) / rows**0.5
        found[job] = _own(centre, half, rows, _error(after[its]))
    other = other_factor(centres, spread)
    wide = (spread.job**2 + spread.row**2) ** 0.5
    return found, _own(other, wide, len(left), _error(left - other)), after


def _own(log: float, width: float, rows: int, residual: float) -> Own:
    value, low, high = (
        float(np.exp(log + side * CONFIDENCE_90 * width)) for side in (0, -1, 1)
    )
    return Own(value, low, high, rows, residual)


def _error(left: Floats) -> float:
    """Median relative error of predictions, from the errors of their logs. [1]."""
    return float(np.median(np.abs(np.expm1(-left)))) if len(left) else 0.0


def _noise(logs: Floats) -> float:
    """Scatter of a row about one factor, within what published rows have. [1]."""
    found = scatter(logs - np.median(logs))
    return float(np.clip(found, REPEATS, spreads().time.row))


def _freed(
    runs: Sequence[Run], before: Floats
) -> tuple[tuple[Constant, ...], dict[Constant, str]]:
    """Constants that rows left out ask for, and why the others stay."""
    if len(runs) < ENOUGH:
        why = f"{len(runs)} of the {ENOUGH} rows that it needs"
        return (), dict.fromkeys(CONSTANTS, why)
    alone = _left_out(np.empty((len(runs), 0)), before, np.empty(0))
    if alone < WORTH:
        why = f"the factor alone leaves {alone:.1%} of rows left out"
        return (), dict.fromkeys(CONSTANTS, why)
    jacobian = np.array([gradient(run, DOCUMENTED) for run in runs])
    free, refused = _identified(jacobian, _noise(before))
    columns = jacobian[:, [CONSTANTS.index(name) for name in free]]
    left = _left_out(columns, before, np.array([WIDTHS[name] for name in free]))
    if free and left <= GAIN * alone:
        return free, refused
    why = f"rows left out are no better for it: {left:.1%}, {alone:.1%} without"
    return (), {**dict.fromkeys(CONSTANTS, why), **refused}


def _left_out(columns: Floats, target: Floats, widths: Floats) -> float:
    """Median error of rows that a factor and constants were fitted without. [1]."""
    rows = len(target)
    fold = np.arange(rows) % FOLDS
    errors: Floats = np.zeros(rows)
    for part in range(min(rows, FOLDS) if rows > 1 else 0):
        out, kept = fold == part, fold != part
        matrix = np.column_stack([np.ones(rows), columns])
        every = np.concatenate([[np.inf], widths])
        alike = np.ones(kept.sum())
        values = ridge(matrix[kept], target[kept], alike, every, ONE_CLUSTER)
        values[0] += np.median(target[kept] - matrix[kept] @ values)
        errors[out] = np.abs(target[out] - matrix[out] @ values)
    return float(np.median(errors))


def _constancy(
    name: Constant, default: float, fitted: tuple[float, float], refused: str
) -> Constancy:
    """A constant in its own unit."""
    log, spread = fitted
    half = CONFIDENCE_90 * spread
    if name == SECONDS:
        value, low, high = (
            max(default + log + side * half, 0.0) for side in (0, -1, 1)
        )
    else:
        value, low, high = (
            default * float(np.exp(log + side * half)) for side in (0, -1, 1)
        )
    return Constancy(name, default, value, low, high, refused)


def _identified(
    jacobian: Floats, noise: float
) -> tuple[tuple[Constant, ...], dict[Constant, str]]:
    """Constants that the runs narrow beside the factor, and why the others stay."""
    free, refused = list(CONSTANTS), dict[Constant, str]()
    while free:
        picked = [CONSTANTS.index(name) for name in free]
        columns = np.column_stack([np.ones(len(jacobian)), jacobian[:, picked]])
        widths = np.array([np.inf, *(WIDTHS[name] for name in free)])
        share = (posterior(columns, widths, noise) / widths)[1:]
        worst = int(np.argmax(share))
        if share[worst] <= NARROWED and len(free) + 1 < len(jacobian):
            break
        name = free.pop(worst)
        condition = np.linalg.cond(columns[:, 1:] * widths[1:])
        refused[name] = (
            f"rows narrow it to {share[worst]:.0%} of what was known "
            f"(condition number {condition:.0f})"
        )
    return tuple(free), refused


def posterior(columns: Floats, widths: Floats, noise: float) -> Floats:
    """Standard deviations of constants after some rows.

    ::

        sqrt(diag((J' J / noise^2 + diag(1 / width^2))^-1))

    Args:
        columns: J, shape (rows, constants). [1] or [1/s]
        widths: Widths of the priors, shape (constants,). [1] or [s]
        noise: Scatter of a row. [1]

    Returns:
        Standard deviations, shape (constants,). [1] or [s]
    """
    information = columns.T @ columns / noise**2 + np.diag(widths**-2.0)
    spread: Floats = np.sqrt(np.diag(np.linalg.inv(information)))
    return spread


def _deviation(free: Sequence[Constant], logs: Floats) -> Deviation:
    return nudged(dict(zip(free, (float(value) for value in logs), strict=True)))


def _solve(runs: Sequence[Run], free: Sequence[Constant]) -> tuple[Floats, Floats]:
    """Gauss-Newton with a bounded robust solve inside, and the spreads at the end.

    The first unknown is the factor, which has no prior.
    """
    optimize = solver()
    widths = np.array([np.inf, *(WIDTHS[name] for name in free)])
    picked = [CONSTANTS.index(name) for name in free]
    logs = np.zeros(len(widths))
    columns = np.empty((len(runs), len(widths)))
    noise = _noise(np.array([run.log_ratio(DOCUMENTED) for run in runs]))
    for _ in range(ROUNDS):
        at = _deviation(free, logs[1:])
        slopes = np.array([gradient(run, at) for run in runs])[:, picked]
        columns = np.column_stack([np.ones(len(runs)), slopes])
        ratio = np.array([run.log_ratio(at) for run in runs])
        logs = optimize.least_squares(
            _misfit(columns, ratio + slopes @ logs[1:], widths, noise),
            logs,
            bounds=_bounds(runs, free),
            loss=_loss(len(runs)),
        ).x
    left = np.array([run.log_ratio(_deviation(free, logs[1:])) for run in runs])
    return logs[1:], posterior(columns, widths, _noise(left))[1:]


def _bounds(runs: Sequence[Run], free: Sequence[Constant]) -> tuple[Floats, Floats]:
    """Bounds of every unknown: the factor has none, a constant its legal range."""
    profile = runs[0].workload.framework.profile
    ends = [(-np.inf, np.inf)]
    for name in free:
        far, here = FARTHEST * WIDTHS[name], getattr(profile, name)
        down = here + TINY if name == SECONDS else far
        up = far if name == SECONDS else float(np.log(most(name) / here))
        ends.append((-min(far, down), max(min(far, up), TINY)))
    low, high = np.array(ends).T
    return low, high


def _misfit(
    columns: Floats, target: Floats, widths: Floats, noise: float
) -> Callable[[Floats], Floats]:
    """Residuals of the rows, then of the priors."""

    def residuals(logs: Floats) -> Floats:
        rows = (target - columns @ logs) / noise
        return np.concatenate([rows, logs / widths])

    return residuals


def _loss(rows: int) -> Callable[[Floats], Floats]:
    """Soft L1 on the rows, plain squares on the priors: rho, rho', rho''."""

    def rho(squares: Floats) -> Floats:
        root = np.sqrt(1 + squares)
        values = np.array([2 * (root - 1), 1 / root, -0.5 / root**3])
        values[:, rows:] = np.array(
            [
                squares[rows:],
                np.ones_like(squares[rows:]),
                np.zeros_like(squares[rows:]),
            ]
        )
        return values

    return rho

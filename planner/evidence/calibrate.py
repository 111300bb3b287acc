"""Fits a stack's constants on one GPU to a user's own measured steps.

Least squares with a soft-L1 loss and bounds, around the shipped constants::

    min over c   sum_i rho((log measured_i - log T_i(c)) / NOISE)
                 + sum_k ((c_k - c_k0) / width_k)^2

A constant stays at its default unless the rows say clearly more than its prior.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.errors import BadInputError
from planner.evidence.hierarchy import NOISE
from planner.evidence.observed import Floats
from planner.evidence.sensitivity import Run, gradient, nudged
from planner.specs.deviation import CONSTANTS, SECONDS, Constant, Deviation
from planner.specs.profile import Profile

WIDTHS: dict[Constant, float] = {
    "clock": 0.15,
    "attention_rate": 0.2,
    "memory_traffic": 0.3,
    "latency": 0.5,
    "network": 0.3,
    "step_overhead": 0.05,
}
"""How far a machine may lie from the shipped constants: log factor [1], or [s]."""
FARTHEST = 4.0
"""Widths at which a fit stops. [1]"""
NARROWED = 0.7
"""Posterior over prior width above which rows say too little of a constant. [1]"""
ROUNDS = 3
"""Times that the model is made linear anew and solved. [1]"""
TINY = 1e-9
"""Room below a start that lies on its bound, which the solver wants. [s]"""
CONFIDENCE_90 = 1.645
"""Half width of a 90 % interval. [standard deviations]"""


@dataclass(frozen=True)
class Constancy:
    """What the rows say of one constant.

    Attributes:
        name: The constant. [text]
        default: Its shipped value. [1] or [s]
        value: Fitted; the default where it was refused. [1] or [s]
        low: Lower end of the 90 % confidence interval. [1] or [s]
        high: Upper end. [1] or [s]
        refused: Why it was not fitted; empty if it was. [text]
    """

    name: Constant
    default: float
    value: float
    low: float
    high: float
    refused: str = ""


@dataclass(frozen=True)
class Calibrated:
    """The fit of one stack on one GPU.

    Attributes:
        constants: All six, in the order of CONSTANTS. [-]
        rows: Measured steps. [1]
        before: Median relative error with the shipped constants. [1]
        residual: The same with the fitted ones. [1]
    """

    constants: tuple[Constancy, ...]
    rows: int
    before: float
    residual: float

    @property
    def fitted(self) -> dict[Constant, float]:
        """The constants that were not refused. [1] or [s]."""
        return {one.name: one.value for one in self.constants if not one.refused}


def solver() -> Any:
    """scipy's optimizers, which the base install does without.

    Returns:
        scipy.optimize. [-]

    Raises:
        BadInputError: The extra is not installed.
    """
    try:
        import scipy.optimize  # noqa: PLC0415  # an extra, for this command only
    except ImportError as error:
        raise BadInputError(
            "calibrate needs scipy: pip install 'planner[calibrate]'"
        ) from error
    return scipy.optimize


def calibrate(runs: Sequence[Run], shipped: Profile) -> Calibrated:
    """Fit the constants that some runs of one stack on one GPU can tell.

    Constants are added while the rows narrow all of them; one run gets one
    multiplier, the clock.

    Args:
        runs: At least one, their workloads on the shipped constants. [-]
        shipped: The stack's profile without what single runs change of it. [-]

    Returns:
        Fitted constants, with confidence intervals. [-]

    Raises:
        BadInputError: scipy is not installed.
    """
    free, refused = _identified(runs)
    logs, spread = _solve(runs, free)
    at = _deviation(free, logs)
    before = [abs(np.expm1(-run.log_ratio(Deviation()))) for run in runs]
    after = [abs(np.expm1(-run.log_ratio(at))) for run in runs]
    default = {name: float(getattr(shipped, name)) for name in CONSTANTS}
    own = {
        name: (float(log), float(width))
        for name, log, width in zip(free, logs, spread, strict=True)
    }
    return Calibrated(
        constants=tuple(
            _told(name, default[name], own.get(name, (0.0, 0.0)), refused.get(name, ""))
            for name in CONSTANTS
        ),
        rows=len(runs),
        before=float(np.median(before)),
        residual=float(np.median(after)),
    )


def _told(
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
    runs: Sequence[Run],
) -> tuple[tuple[Constant, ...], dict[Constant, str]]:
    """Constants that the runs narrow, and why the others stay."""
    if len(runs) == 1:
        others = CONSTANTS[1:]
        return ("clock",), dict.fromkeys(others, "one row gives one multiplier")
    free, refused = list(CONSTANTS), dict[Constant, str]()
    jacobian = np.array([gradient(run, Deviation()) for run in runs])
    while len(free) > 1:
        widths = np.array([WIDTHS[name] for name in free])
        columns = jacobian[:, [CONSTANTS.index(name) for name in free]]
        share = posterior(columns, widths, NOISE) / widths
        worst = int(np.argmax(share))
        if share[worst] <= NARROWED and len(free) < len(runs):
            break
        name = free.pop(worst)
        condition = np.linalg.cond(columns * widths)
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
        widths: Of the priors, shape (constants,). [1] or [s]
        noise: Scatter of a row. [1]

    Returns:
        Shape (constants,). [1] or [s]
    """
    information = columns.T @ columns / noise**2 + np.diag(widths**-2.0)
    spread: Floats = np.sqrt(np.diag(np.linalg.inv(information)))
    return spread


def _deviation(free: Sequence[Constant], logs: Floats) -> Deviation:
    return nudged(dict(zip(free, (float(value) for value in logs), strict=True)))


def _solve(runs: Sequence[Run], free: Sequence[Constant]) -> tuple[Floats, Floats]:
    """Gauss-Newton with a bounded robust solve inside, and the spreads at the end."""
    optimize = solver()
    widths = np.array([WIDTHS[name] for name in free])
    picked = [CONSTANTS.index(name) for name in free]
    logs = np.zeros(len(free))
    columns = np.empty((len(runs), len(free)))
    for _ in range(ROUNDS):
        at = _deviation(free, logs)
        columns = np.array([gradient(run, at) for run in runs])[:, picked]
        target = np.array([run.log_ratio(at) for run in runs]) + columns @ logs
        logs = optimize.least_squares(
            _misfit(columns, target, widths),
            logs,
            bounds=(_lowest(runs, free, widths), FARTHEST * widths),
            loss=_loss(len(runs)),
        ).x
    left = np.array([run.log_ratio(_deviation(free, logs)) for run in runs])
    scatter = 1.48 * float(np.median(np.abs(left)))
    return logs, posterior(columns, widths, max(NOISE, scatter))


def _lowest(runs: Sequence[Run], free: Sequence[Constant], widths: Floats) -> Floats:
    """Lower bounds; no step overhead falls below nothing."""
    default = runs[0].workload.profile.step_overhead
    floors = [np.inf if name != SECONDS else default + TINY for name in free]
    return -np.minimum(FARTHEST * widths, floors)


def _misfit(
    columns: Floats, target: Floats, widths: Floats
) -> Callable[[Floats], Floats]:
    """Residuals of the rows, then of the priors."""

    def residuals(logs: Floats) -> Floats:
        rows = (target - columns @ logs) / NOISE
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

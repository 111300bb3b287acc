"""Fits the constants of all stacks together: deviations that shrink to their parents.

The step time of row i moves with the deviations of three levels::

    log T_i = log T_i0 + J_i (everything + architecture(i) + stack(i))

so one ridge regression on the rows' Jacobians has all of them. A level's prior
pulls it to zero: a stack with few rows, or none, takes what its parents have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.calibration.fitting.fit_columns import Floats, Observed, Tags, weights
from planner.specs.frameworks.deviation import (
    CONSTANTS,
    FACTORS,
    SECONDS,
    Constant,
    Deviation,
)

NOISE = 0.1
"""Scatter of measured steps about the model, where the loss turns linear. [1]

Source: rows whose source the fit left out scatter by 0.08 to 0.13 within a source."""
ROUNDS = 30
"""Reweightings of the robust loss; it has settled long before. [1]"""

Widths = Mapping[Constant, float]
EVERYTHING, ARCHITECTURE, STACK = "everything", "arch", "stack"
PRIORS: Mapping[str, Widths] = {
    EVERYTHING: {"clock": 0.03, "network": 0.08},
    ARCHITECTURE: {"clock": 0.03, "network": 0.05},
    STACK: {"clock": 0.1, "memory_traffic": 0.08, "latency": 0.15},
}
"""Width of the prior of each level's constants: log factor [1], or seconds [s].

No level fits a constant that it lacks: four constants for a stack on a GPU. Networks
belong to the hardware, fusion and launch to the software; the clock takes what either
lacks. Attention and step overheads stay as measured and documented: fitted here, they
made rows left out worse.
"""


@dataclass(frozen=True)
class Column:
    """One unknown of the joint fit.

    Attributes:
        level: everything, arch or stack. [text]
        name: Architecture or stack; empty for everything. [text]
        constant: Constant that the unknown moves. [text]
        width: Width of the prior. [1] or [s]
    """

    level: str
    name: str
    constant: Constant
    width: float


def columns(
    tags: Sequence[Tags], priors: Mapping[str, Widths] = PRIORS
) -> tuple[Column, ...]:
    """The unknowns that rows of some stacks and architectures have.

    Args:
        tags: Tags of each row, shape (rows,). [-]
        priors: Constants of each level and their widths. [1] or [s]

    Returns:
        One unknown per level, member and constant, shape (unknowns,). [-]
    """
    members = {
        EVERYTHING: [""],
        ARCHITECTURE: sorted({tag.arch for tag in tags}),
        STACK: sorted({tag.stack for tag in tags}),
    }
    return tuple(
        Column(level, name, constant, width)
        for level, widths in priors.items()
        for name in members[level]
        for constant, width in widths.items()
    )


def design(observed: Observed, unknowns: Sequence[Column]) -> Floats:
    """Slope of each row's log step in each unknown.

    Args:
        observed: The rows. [-]
        unknowns: The columns, shape (unknowns,). [-]

    Returns:
        Slopes, 0 where a row is not of the column's member, shape (rows, unknowns). [1]
    """
    matrix = np.zeros((len(observed), len(unknowns)))
    names = {level: np.array(observed.of(level)) for level in (ARCHITECTURE, STACK)}
    names[EVERYTHING] = np.full(len(observed), "")
    for at, column in enumerate(unknowns):
        share = observed.jacobian[:, CONSTANTS.index(column.constant)]
        matrix[:, at] = share * (names[column.level] == column.name)
    return matrix


def ridge(
    matrix: Floats,
    target: Floats,
    weight: Floats,
    widths: Floats,
    noise: float = NOISE,
) -> Floats:
    """Robust least squares with a prior on every unknown.

    Minimises, with z = (target - matrix x) / noise::

        sum_i weight_i 2 (sqrt(1 + z_i^2) - 1) + sum_k (x_k / widths_k)^2

    by iterated reweighting.

    Args:
        matrix: Shape (rows, unknowns). [1]
        target: Shape (rows,). [1]
        weight: Shape (rows,). [1]
        widths: Widths of the priors, shape (unknowns,). [1] or [s]
        noise: Scatter from which on the loss is linear. [1]

    Returns:
        The unknowns, shape (unknowns,). [1] or [s]
    """
    unknowns: Floats = np.zeros(matrix.shape[1])
    prior = np.diag(widths**-2.0)
    for _ in range(ROUNDS):
        z = (target - matrix @ unknowns) / noise
        trust = weight / np.sqrt(1.0 + z**2) / noise**2
        weighted = matrix.T * trust
        step = np.asarray(
            np.linalg.solve(weighted @ matrix + prior, weighted @ target),
            dtype=np.float64,
        )
        if np.allclose(step, unknowns, atol=1e-4):
            break
        unknowns = step
    return unknowns


@dataclass(frozen=True)
class JointFit:
    """Fitted deviations of every level.

    Attributes:
        unknowns: Fitted unknowns, shape (unknowns,). [-]
        values: Log factors, and seconds, shape (unknowns,). [1] or [s]
    """

    unknowns: tuple[Column, ...]
    values: Floats

    def predicted(self, observed: Observed) -> Floats:
        """Change of rows' log step, also of rows whose stack the fit never saw.

        Returns:
            log(T / T0) of the linear model, shape (rows,). [1]
        """
        moved: Floats = design(observed, self.unknowns) @ self.values
        return moved

    def left(self, observed: Observed) -> Floats:
        """Remaining log error of the rows.

        Returns:
            log(measured / predicted), shape (rows,). [1]
        """
        return observed.log_ratio - self.predicted(observed)

    def deviation(self, level: str, name: str = "") -> Deviation:
        """Deviation of one member of a level.

        Args:
            level: everything, arch or stack. [text]
            name: The member; empty for everything. [text]
        """
        own = {
            column.constant: value
            for column, value in zip(self.unknowns, self.values, strict=True)
            if (column.level, column.name) == (level, name)
        }
        factors = {c: round(float(np.exp(own[c])), 3) for c in FACTORS if c in own}
        seconds = {SECONDS: round(float(own[SECONDS]), 4)} if SECONDS in own else {}
        return Deviation.model_validate(factors | seconds)

    def members(self, level: str) -> tuple[str, ...]:
        """Architectures or stacks that the fit saw."""
        return tuple(sorted({c.name for c in self.unknowns if c.level == level}))


def fit_all(observed: Observed, priors: Mapping[str, Widths] = PRIORS) -> JointFit:
    """Fit the deviations of all levels to measured rows.

    Args:
        observed: The rows. [-]
        priors: Constants of each level and their widths. [1] or [s]
    """
    unknowns = columns(observed.tags, priors)
    matrix = design(observed, unknowns)
    widths = np.array([column.width for column in unknowns])
    values = ridge(matrix, observed.log_ratio, weights(observed.tags), widths)
    return JointFit(unknowns, values)

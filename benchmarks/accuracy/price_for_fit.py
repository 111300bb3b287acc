"""Prices measured rows on their documented stacks, with all that a fit needs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.accuracy.ledger import SCATTERED
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import price_case, price_row
from planner.calibration.fitting.fit_columns import Floats, Observed, Tags
from planner.calibration.fitting.sensitivity import deviating, gradient, run_of
from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.calibration.rows.rows import Row
from planner.frameworks.fitted import DOCUMENTED, Fit
from planner.hardware.reading.files import SHIPPED
from planner.specs.frameworks.deviation import CONSTANTS, FACTORS, Deviation


@dataclass(frozen=True)
class Observation:
    """One row with its price, and the slopes of the predicted step.

    Attributes:
        outcome: Priced at the constants that the slopes start from. [-]
        tags: Tags of the row; None where it has no price. [-]
        slopes: Slopes of the log step, shape (6,); None without a step. [1], [1/s]
    """

    outcome: Outcome
    tags: Tags | None = None
    slopes: Floats | None = None


def observe(row: Row, fit: Fit = DOCUMENTED, *, slopes: bool = True) -> Observation:
    """Price a row and find how its step moves with its stack's constants.

    Args:
        row: The row as read. [-]
        fit: Constants to price at; as documented without one. [-]
        slopes: True to find the slopes too. [-]

    Returns:
        The row with its price; without slopes where it has no measured step. [-]
    """
    if row.spec is not None:
        # A planned run is a user's own: no evidence for what everybody gets.
        return Observation(price_row(row, catalog=SHIPPED))
    try:
        case = case_of(row, SHIPPED)
    except Exception:  # noqa: BLE001
        # price_row tells the reason; one row must not lose the others.
        return Observation(price_row(row, catalog=SHIPPED))
    tags = _tags(case)
    case = replace(case, workload=deviating(case.workload, _deviation(tags, fit)))
    outcome = price_case(case)
    if outcome.status != "ok":
        return Observation(outcome)
    if not slopes or not outcome.measured_step_s:
        return Observation(outcome, tags)
    return Observation(outcome, tags, gradient(run_of(case, case.workload)))


def _tags(case: Case) -> Tags:
    """Tags of a row, from its case."""
    workload = case.workload
    return Tags(
        id=case.row.id,
        source=case.row.source_key,
        group=case.row.group,
        arch=workload.gpu.arch,
        stack=workload.framework.profile.name,
        moe=workload.model.expert_parameters > 0,
    )


def _deviation(tags: Tags, fit: Fit) -> Deviation:
    return fit.deviation(tags.arch, tags.stack)


def steps(observations: Iterable[Observation], fit: Fit = DOCUMENTED) -> Observed:
    """The step times of observations as columns of a fit from the documented stacks.

    A price at other constants is carried back along the row's slopes.

    Args:
        observations: Rows; those without a price or a step, those that are not
            counted and those on GPUs that vary too much are left out. [-]
        fit: The constants that they were priced at. [-]

    Returns:
        The rows. [-]
    """
    used = [one for one in observations if one.slopes is not None and counts(one)]
    slopes = np.array([one.slopes for one in used]).reshape(len(used), len(CONSTANTS))
    tags = tuple(one.tags for one in used if one.tags)
    moved = np.array([_logs(_deviation(tag, fit)) for tag in tags])
    errors = [one.outcome.step_error or 0.0 for one in used]
    ratio = -np.log1p(np.array(errors))
    back = (slopes * moved.reshape(slopes.shape)).sum(axis=1)
    return Observed(tags, ratio + back, slopes)


def _logs(deviation: Deviation) -> Floats:
    """Log of the factors, and the seconds, in the order of CONSTANTS."""
    factors = [float(np.log(getattr(deviation, name))) for name in FACTORS]
    return np.array([*factors, deviation.step_overhead])


def counts(one: Observation) -> bool:
    """True where a row is evidence: its check is ok, its machine was not shared.

    Args:
        one: A row. [-]

    Returns:
        False for suspect rows and rows of shared clusters. [-]
    """
    return (
        one.outcome.counted and one.tags is not None and one.tags.arch not in SCATTERED
    )

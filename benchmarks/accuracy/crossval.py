"""Errors on rows that the fit never saw: without their group, or their source."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from planner.calibration.fitting.fit_columns import Flags, Floats, Observed
from planner.calibration.fitting.hierarchy import PRIORS, Widths, fit_all


@dataclass(frozen=True)
class Residuals:
    """log(measured / predicted) of every row, three ways.

    Attributes:
        in_sample: With constants fitted to all rows, shape (rows,). [1]
        without_group: Fitted without the row's split group, shape (rows,). [1]
        without_source: Fitted without the row's source, shape (rows,). [1]
    """

    in_sample: Floats
    without_group: Floats
    without_source: Floats


def residuals(observed: Observed, priors: Mapping[str, Widths] = PRIORS) -> Residuals:
    """Fit in-sample, leaving out every group, and leaving out every source.

    Args:
        observed: All rows. [-]
        priors: Constants of each level and their widths. [1] or [s]

    Returns:
        Remaining error of each row. [1]
    """
    return Residuals(
        in_sample=fit_all(observed, priors).left(observed),
        without_group=left_out(observed, "group", priors),
        without_source=left_out(observed, "source", priors),
    )


def left_out(
    observed: Observed, tag: str, priors: Mapping[str, Widths] = PRIORS
) -> Floats:
    """Errors of every row under the constants that the other rows give.

    Args:
        observed: All rows. [-]
        tag: Tag whose rows are left out together: group or source. [text]
        priors: Constants of each level and their widths. [1] or [s]

    Returns:
        log(measured / predicted), shape (rows,). [1]
    """
    left = np.empty(len(observed))
    for out, others in folds(observed, tag):
        left[out] = fit_all(observed.take(others), priors).left(observed.take(out))
    return left


def folds(observed: Observed, tag: str) -> Iterator[tuple[Flags, Flags]]:
    """Rows left out and rows that may be fitted to, for each value of a tag.

    A split group stays on one side, also where two sources share it.

    Args:
        observed: All rows. [-]
        tag: Tag that sorts the rows: group or source. [text]

    Yields:
        Rows left out, and rows without their near-duplicates; shape (rows,). [-]
    """
    groups = np.array(observed.of("group"))
    for value in sorted(set(observed.of(tag))):
        out = observed.where(tag, value)
        yield out, ~out & ~np.isin(groups, groups[out])

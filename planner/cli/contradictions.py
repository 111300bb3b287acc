"""Refusal of limits that clash, before a command looks at any layout."""

from pathlib import Path
from typing import TYPE_CHECKING

from planner.calibration_file import read_calibration
from planner.cli.jobs import Job
from planner.expressible import refuse_inexpressible
from planner.resolve import about
from planner.search.emptiness import has_legal
from planner.variants import variants

if TYPE_CHECKING:
    from planner.explain import Case


def case_of(job: Job, calibration: Path | None) -> "Case":
    """The case of a job, to be asked about under changes.

    Args:
        job: The job. [-]
        calibration: File of what the user measured, or None. [-]

    Returns:
        The case. [-]
    """
    from planner.explain import Case  # noqa: PLC0415  # for few answers

    own = None if calibration is None else read_calibration(calibration)
    return Case(job.spec, job.file, job.base, own)


def refuse_contradiction(job: Job, calibration: Path | None) -> None:
    """Refuse limits that leave no legal layout.

    Args:
        job: The job. [-]
        calibration: File of what the user measured, or None. [-]

    Raises:
        BadInputError: Names a limit that no framework of the job can express, or a
            minimal set of limits that clashes and the nearest values that do not.
    """
    with about(job.file):
        refuse_inexpressible(job.workloads)
        every = variants(job.workloads)
    if has_legal(every):
        return
    from planner.explain import as_error, contradiction  # noqa: PLC0415

    raise as_error(contradiction(case_of(job, calibration)), job.file)

"""Refusal of limits that clash, before a command looks at any layout."""

from planner.job.case import Case
from planner.job.expressible import refuse_inexpressible
from planner.job.resolve import about
from planner.job.variants import variants
from planner.search.emptiness import has_legal


def refuse_contradiction(job: Case) -> None:
    """Refuse limits that leave no legal layout.

    Args:
        job: The job. [-]

    Raises:
        BadInputError: Names a limit that no framework of the job can express, or a
            minimal set of limits that clashes and the nearest values that do not.
    """
    with about(job.file):
        refuse_inexpressible(job.workloads)
        every = variants(job.workloads)
    if has_legal(every):
        return
    from planner.explanation import as_error, contradiction  # noqa: PLC0415

    raise as_error(contradiction(job), job.file)

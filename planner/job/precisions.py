"""The compute formats that a search may choose from, by framework."""

from collections.abc import Sequence

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks import FRAMEWORKS


def can_compute(workload: Workload, precision: str) -> bool:
    """Tell if a framework has a compute format that the user lists.

    A format that only the training block states is accepted: the user runs it.

    Returns:
        True for a format of the framework, and for any format where none is listed.
    """
    listed = workload.search.choices("precision")
    return not listed or precision in workload.framework.limits.precisions


def refuse_precisions(workloads: Sequence[Workload]) -> None:
    """Refuse a listed compute format that no framework of the job has."""
    for precision in workloads[0].search.choices("precision"):
        if any(can_compute(workload, precision) for workload in workloads):
            continue
        has = [f.name for f in FRAMEWORKS if precision in f.limits.precisions]
        allowed = (p for w in workloads for p in w.framework.limits.precisions)
        names = ", ".join(dict.fromkeys(w.framework.name for w in workloads))
        others = f"; {' and '.join(has)} can" if has else ""
        raise BadInputError(
            f"{names} cannot compute in this format{others}",
            field="search.precision",
            value=precision,
            allowed=", ".join(dict.fromkeys(allowed)),
        )

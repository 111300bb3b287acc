"""The flow of `planner diff`: plans that are read, or jobs that are planned."""

from pathlib import Path
from typing import NoReturn

from planner.errors import InfeasibleError, TimeLimitError
from planner.hardware.reading.documents import DocumentError, plain_json
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.loading import Job
from planner.launch import read_plan
from planner.planning.difference import Compared
from planner.questions.inputs.progress import OnProgress
from planner.questions.plan import phases_to_plan, planned
from planner.report.heading import Heading, heading
from planner.search.stop import Stop
from planner.specs.answer.difference import Side
from planner.specs.answer.result import RankedPlan, Result
from planner.specs.reading.read import locate, user_text


def holds_plan(path: Path) -> bool:
    """Tell if a file holds a plan or a result, not a job.

    Args:
        path: The file, or the name of a job. [-]

    Returns:
        True where the file is JSON with a schema.

    Raises:
        BadInputError: There is no such file and no such job.
    """
    file = locate(path)
    if file.suffix != ".json":
        return False
    try:
        fields = plain_json(user_text(file, pipes=True))
    except DocumentError:
        return False
    return isinstance(fields, dict) and "schema" in fields


def read_side(
    path: Path, catalog: Catalog, calibration: CalibrationFile | None
) -> Compared:
    """Read a plan, or the first plan of a result.

    Args:
        path: JSON that `planner plan` wrote. [-]
        catalog: Files of facts. [-]
        calibration: What the user measured. [-]

    Returns:
        The plan. [-]

    Raises:
        BadInputError: The file holds no plan, or an illegal one.
    """
    found = read_plan(path, catalog, calibration)
    plan = found.plan
    best = RankedPlan(rank=1, layout=plan.layout, estimate=plan.estimate)
    return _compared(str(path), "plan", best, plan.spec, heading(found.pricing))


def planned_side(job: Job, stop: Stop, told: OnProgress) -> Compared:
    """Plan a job.

    Args:
        job: The job. [-]
        stop: Ends the search. [-]
        told: Called about ten times a second with the state of the search. [-]

    Returns:
        The first plan, of the first phase. [-]

    Raises:
        BadInputError: The job cannot be planned.
        InfeasibleError: Nothing fits.
        TimeLimitError: The time ended before the first plan.
    """
    phases = phases_to_plan(job)
    found = planned(phases, top=1, stop=stop, robust=True, told=told).result
    if not found.plans:
        refuse_planless(job.file, found)
    title = heading(phases[0].job.workload_of(found.plans[0]))
    return _compared(job.file, "job", found.plans[0], found.spec, title)


def result_side(name: str, result: Result, title: Heading) -> Compared:
    """Take the first plan of an answer.

    Args:
        name: Name of the answer. [text]
        result: The answer, with a plan. [-]
        title: Heading of its job. [-]

    Returns:
        The plan. [-]
    """
    return _compared(name, "plan", result.plans[0], result.spec, title)


def _compared(
    name: str, kind: str, plan: RankedPlan, spec: dict[str, object], title: Heading
) -> Compared:
    side = Side.model_validate(
        {
            "name": name,
            "kind": kind,
            "title": f"{title.model} on {title.on}, {title.framework}",
            "layout": plan.layout,
            "verdict": plan.estimate.memory.verdict,
        }
    )
    return Compared(side, spec, plan.settings, plan.estimate)


def refuse_planless(file: str, found: Result) -> NoReturn:
    """End as `planner plan` would.

    Args:
        file: File of the job. [text]
        found: Answer of a search without plans. [-]

    Raises:
        InfeasibleError: Nothing fits.
        TimeLimitError: The time ended before the first plan.
    """
    if found.status == "infeasible":
        raise InfeasibleError(f"{file}: proven: no legal layout fits the memory")
    raise TimeLimitError(f"{file}: no plan in time; give more --time-limit")

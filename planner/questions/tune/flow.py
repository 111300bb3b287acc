"""The flow of `planner tune`: runs are written; logs are read and runs chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planner.calibration.fitting.calibrate import solver
from planner.cost.estimate.estimate import estimate
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.hardware.reading.escape import yaml_text
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.loading import Job
from planner.launch import check_folder, read_plan, require_written, write_folder
from planner.launch.emit import PLAN
from planner.questions.calibrate import fitted
from planner.questions.diff import refuse_planless
from planner.questions.inputs.overlay import catalog_with
from planner.questions.inputs.progress import OnProgress
from planner.questions.nearest import with_nearest
from planner.questions.outputs.files import write_whole
from planner.questions.plan import phases_to_plan, planned
from planner.questions.tuning.answer import Priced, decided, tuning
from planner.questions.tuning.manifest import MANIFEST, Manifest, read_manifest
from planner.questions.tuning.readings import LOG, Reading, reading
from planner.questions.tuning.runs import (
    SCRIPT,
    Made,
    is_same,
    made,
    script,
    worth_a_run,
)
from planner.report.heading import heading
from planner.search.stop import Stop
from planner.specs.answer.result import RankedPlan, Result
from planner.specs.answer.tuning import Tuning

ROWS, CALIBRATION = "rows.yaml", "calibration.yaml"
"""Measured rows of a folder, and the factors fitted to them. [text]"""
TOP = 8
"""Plans that become runs, unless told otherwise. [1]"""
BUDGET = 5
"""Runs to measure, unless told otherwise. [1]"""
HEAD = "The short runs of this folder, for planner calibrate and planner validate."


def begun(
    job: Job,
    out: Path,
    *,
    top: int,
    budget: int,
    hardware: Path | None,
    stop: Stop,
    told: OnProgress,
) -> Tuning:
    """Plan a job, and write the plans that are worth a run as short runs.

    Args:
        job: The job. [-]
        out: New folder. [path]
        top: Most runs to write. [1]
        budget: Most runs to measure. [1]
        hardware: Folder of hardware that was laid over ours. [path]
        stop: Ends the search. [-]
        told: Called about ten times a second with the state of the search. [-]

    Returns:
        The answer. [-]

    Raises:
        BadInputError: The folder is not new, the job cannot be planned, or scipy,
            which later calls fit with, is not installed.
        InfeasibleError: Nothing fits.
        TimeLimitError: The time ended before the first plan.
        UnsupportedPlanError: No launch files can be written.
    """
    check_folder(out, force=False)
    solver()
    result = _searched(job, top, stop, told)
    plans = worth_a_run(job, result)[:top]
    if not plans:
        refuse_planless(job.file, result)
    with with_nearest():
        ours = made(job, plans)
    title = _title(job, plans[0])
    where = "" if hardware is None else str(hardware.resolve())
    manifest = Manifest.of(job, top=top, budget=budget, hardware=where, runs=ours.runs)
    files = (manifest.text, script(title, ours.plans), *ours.files)
    write_folder(out, files, force=False)
    runs = _first_priced(ours)
    return tuning(
        out,
        title,
        runs,
        {},
        decided(runs, {}, budget),
        budget=budget,
        first=runs[0].run.name,
        warnings=(*_alone(runs), *ours.refused, *result.warnings),
    )


def _searched(job: Job, top: int, stop: Stop, told: OnProgress) -> Result:
    phases = phases_to_plan(job)
    if len(phases) > 1:
        raise BadInputError(
            "are planned one by one, and tune measures one job",
            file=job.file,
            field="phases",
            allowed="a job of one phase",
        )
    require_written(job.workloads, job.file)
    return planned(phases, top=top, stop=stop, robust=True, told=told).result


def _alone(runs: Sequence[Priced]) -> tuple[str, ...]:
    if len(runs) > 1:
        return ()
    return ("no other plan is worth a run: the first one's calibrates the next search",)


def _title(job: Job, plan: RankedPlan) -> str:
    its = heading(job.workload_of(plan))
    return f"{its.model} on {its.on}, {its.framework}"


def _first_priced(ours: Made) -> tuple[Priced, ...]:
    pairs = zip(ours.runs, ours.plans, strict=True)
    return tuple(Priced(run, found, found.plan.estimate) for run, found in pairs)


@dataclass(frozen=True)
class _Again:
    """Findings of the search under the calibration.

    Attributes:
        made: Plans that are no runs yet, as runs. [-]
        first: Run of the first plan, or None. [text]
        warnings: Sentences. [text]
    """

    made: Made
    first: str | None
    warnings: tuple[str, ...]


def continued(
    folder: Path, *, top: int | None, budget: int | None, stop: Stop, told: OnProgress
) -> Tuning:
    """Read the logs of a folder, calibrate, plan again and choose the next run.

    Args:
        folder: Folder that `begun` wrote. [path]
        top: Most plans of the search that become runs; None as at the start. [1]
        budget: Most runs to measure; None as at the start. [1]
        stop: Ends the search. [-]
        told: Called about ten times a second with the state of the search. [-]

    Returns:
        The answer; the folder has new runs where the search found new ties. [-]

    Raises:
        BadInputError: The folder has no logs or a foreign one, or is not of tune.
    """
    manifest = read_manifest(folder).changed(top, budget)
    catalog = catalog_with(Path(manifest.hardware) if manifest.hardware else None)
    readings = _readings(folder, manifest, catalog)
    own = _calibrated(folder, readings, catalog, manifest.calibration)
    job = manifest.job(folder, catalog, own)
    runs = [_priced(folder, run.name, manifest, catalog, own) for run in manifest.runs]
    again = _again(job, manifest, runs, stop, told)
    more = (*runs, *_first_priced(again.made))
    decision = decided(more, readings, manifest.budget)
    added = again.made.runs if decision.next else ()
    if added:
        _add(folder, manifest, again.made)
    else:
        decision, more = decided(runs, readings, manifest.budget), tuple(runs)
    measured = any(read.row for read in readings.values())
    pricing = runs[0].found.pricing
    return tuning(
        folder,
        _title_of(pricing),
        more,
        readings,
        decision,
        budget=manifest.budget,
        first=again.first,
        added=[run.name for run in added],
        calibration=str(folder / CALIBRATION) if measured else "",
        warnings=again.warnings,
    )


def _title_of(workload: Workload) -> str:
    its = heading(workload)
    return f"{its.model} on {its.on}, {its.framework}"


def _readings(folder: Path, manifest: Manifest, catalog: Catalog) -> dict[str, Reading]:
    """The outcome of every run that has a log."""
    found = {}
    for run in manifest.runs:
        log = folder / run.name / LOG
        if log.is_file():
            file = folder / run.name / PLAN
            plan = read_plan(file, catalog, manifest.calibration)
            found[run.name] = reading(plan, run.name, log)
    if not found:
        raise BadInputError(
            "holds no logs yet",
            file=str(folder),
            field=f"run-*/{LOG}",
            allowed=f"the logs that {SCRIPT} writes",
        )
    return found


def _calibrated(
    folder: Path,
    readings: Mapping[str, Reading],
    catalog: Catalog,
    own: CalibrationFile | None,
) -> CalibrationFile | None:
    """Factors fitted to the runs; those given at the start where none was measured."""
    rows = [read.row for read in readings.values() if read.row is not None]
    if not rows:
        return own
    file = folder / ROWS
    write_whole(file, yaml_text(rows, [HEAD], short_in_one_line=True).rstrip())
    found = fitted([file], catalog, own, warn=lambda _: None)
    write_whole(folder / CALIBRATION, found.text)
    return found.file


def _priced(
    folder: Path,
    name: str,
    manifest: Manifest,
    catalog: Catalog,
    own: CalibrationFile | None,
) -> Priced:
    run = next(run for run in manifest.runs if run.name == name)
    found = read_plan(folder / name / PLAN, catalog, own)
    return Priced(run, found, estimate(found.pricing, found.plan.layout))


def _again(
    job: Job, manifest: Manifest, runs: Sequence[Priced], stop: Stop, told: OnProgress
) -> _Again:
    """Plan under the calibration; plans worth a run that are none yet become runs."""
    result = _searched(job, manifest.top, stop, told)
    plans = worth_a_run(job, result)[: manifest.top]
    if not plans:
        said = f"the search with the calibration found no plan: {result.status}"
        return _Again(Made((), (), (), ()), None, (said,))
    known = {plan.rank: _known(job, plan, runs) for plan in plans}
    new = [plan for plan in plans if known[plan.rank] is None]
    with with_nearest():
        ours = made(job, new, first=len(runs) + 1)
    first = known[plans[0].rank]
    if first is None and ours.runs:
        first = ours.runs[0].name
    return _Again(ours, first, (*ours.refused, *result.warnings))


def _known(job: Job, plan: RankedPlan, runs: Sequence[Priced]) -> str | None:
    """Name of the run of a plan, None where there is none."""
    framework = job.workload_of(plan).framework.name
    same = (
        one.run.name
        for one in runs
        if is_same(one.run, one.found.plan.layout, plan, framework)
    )
    return next(same, None)


def _add(folder: Path, manifest: Manifest, ours: Made) -> None:
    """Write the folders of new runs, then the manifest that names them."""
    for run in ours.runs:
        inside = f"{run.name}/"
        files = [
            replace(file, name=file.name.removeprefix(inside))
            for file in ours.files
            if file.name.startswith(inside)
        ]
        write_folder(folder / run.name, files, force=False)
    runs = (*manifest.runs, *ours.runs)
    text = manifest.model_copy(update={"runs": runs}).text.text
    write_whole(folder / MANIFEST, text)

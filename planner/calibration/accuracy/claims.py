"""Gains that planner's own plan claims over the layouts of measured runs.

An optimizer picks what its model misjudges. A run that experts tuned has little left to
gain, so that a large claim is an error of the model, or of what is called legal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from joblib import Parallel, delayed
from joblib import hash as hash_of

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.calibration.mapping.software import year_of
from planner.calibration.notes.rules import rules
from planner.calibration.rows.rows import Row
from planner.cost.workload import Workload
from planner.errors import PlannerError
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import with_stack
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.planning.optimize import optimize
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout import Offload
from planner.specs.layouts.layout_text import packed_layout
from planner.specs.search import SearchSpec

Told = Callable[[int, int], object]
"""Called with the number of jobs that are planned, and the number of all jobs."""


@dataclass(frozen=True)
class Searching:
    """Settings that every job is searched under.

    Attributes:
        seconds: Time limit of one job's search. [s]
        catalog: Files of facts. [-]
        own: The user's calibration, laid over ours; or None. [-]
        workers: Processes; -1 takes every core. [1]
    """

    seconds: float
    catalog: Catalog
    own: CalibrationFile | None = None
    workers: int = -1


@dataclass(frozen=True)
class _Found:
    """The fastest plan of a job; none where no plan was found. [s]."""

    step_s: float | None
    layout: str
    status: str
    device_gib: float | None = None


def with_claims(
    rows: Sequence[Row],
    outcomes: Sequence[Outcome],
    how: Searching,
    told: Told | None = None,
) -> list[Outcome]:
    """Plan the job of every priced row, and put the plan beside the row's layout.

    A job is planned once for all rows that ran it. The job is the row's model,
    training block, stack, GPUs and memory, within the limits of the stack and of the
    risk of running out of memory. The rows' own layouts are in the race, whatever their
    risk, as they ran: plans slower than the slowest are not sought.

    Args:
        rows: Measured rows, shape (rows,). [-]
        outcomes: Their predictions, in the same order. [-]
        how: Time limit, calibration and processes. [-]
        told: Called after every job. [-]

    Returns:
        The outcomes, with the step and the layout of the plan. [-], shape (rows,)
    """
    priced = [at for at, one in enumerate(outcomes) if one.status == "ok"]
    workers = how.workers if len(priced) > 1 else 1
    parallel = Parallel(n_jobs=workers, return_as="generator", batch_size=1)
    keys = list(parallel(delayed(_key)(rows[at], how) for at in priced))
    jobs: dict[str, list[int]] = {}
    for key, at in zip(keys, priced, strict=True):
        jobs.setdefault(key, []).append(at)
    slowest = [max(_step(outcomes[at]) for at in each) for each in jobs.values()]
    plans = parallel(
        delayed(_plan)(rows[each[0]], known, how)
        for each, known in zip(jobs.values(), slowest, strict=True)
    )
    found = dict(zip(jobs, _told(plans, len(jobs), told), strict=True))
    answer = list(outcomes)
    for key, at in zip(keys, priced, strict=True):
        answer[at] = _beside(outcomes[at], found[key])
    return answer


def _step(outcome: Outcome) -> float:
    assert outcome.predicted_step_s is not None
    return outcome.predicted_step_s


def _told(plans: Iterator[_Found], total: int, told: Told | None) -> Iterator[_Found]:
    for done, plan in enumerate(plans, start=1):
        if told is not None:
            told(done, total)
        yield plan


def _beside(outcome: Outcome, found: _Found) -> Outcome:
    """An outcome with the faster of the plan and the row's own layout."""
    own = _step(outcome)
    faster = found.step_s is not None and found.step_s < own
    return outcome.model_copy(
        update={
            "planned_step_s": found.step_s if faster else own,
            "planned_layout": found.layout if faster else outcome.layout,
            "planned_status": found.status,
            "planned_device_gib": found.device_gib if faster else None,
        }
    )


def _case(row: Row, how: Searching) -> Case:
    return case_of(row, how.catalog).under(how.own)


def _key(row: Row, how: Searching) -> str:
    """Key of the rows that ran one job. [text]."""
    job = _job(_case(row, how))
    cluster = job.topology.cluster
    key: str | None = hash_of(
        (job.model, job.training, job.framework, cluster, job.search)
    )
    assert key is not None
    return key


def _job(case: Case) -> Workload:
    """The job of a row, within the limits of the row's stack."""
    framework = case.workload.framework
    room = next(each for each in FRAMEWORKS if each.name == framework.name)
    limits = with_stack(room, case.stack).limits if case.row.spec is None else None
    return replace(
        case.workload,
        framework=replace(framework, limits=limits or framework.limits),
        search=_choices(case),
    ).unwritten()


def _choices(case: Case) -> SearchSpec:
    """Choices that the row's software had; offload where the row offloads."""
    year = year_of(case.row, case.workload.gpu.arch)
    method = case.workload.training.method
    lacks = (
        rule.search
        for rule in rules().lacks
        if case.stack in rule.stacks and year < rule.until and method in rule.methods
    )
    search = next(lacks, SearchSpec())
    offloads = case.layout.offload not in {None, Offload()}
    return search.model_copy(update={"offload": True}) if offloads else search


def _plan(row: Row, known_s: float, how: Searching) -> _Found:
    """The fastest plan of a row's job that `plan` would admit.

    None where no plan within the limit on the risk is as fast as known.
    """
    job = _job(_case(row, how)).at_risk_of_most(robust=True)
    try:
        answer = optimize([job], top=1, time_limit=how.seconds, known_s=known_s)
    except PlannerError as error:
        return _Found(None, "", f"{error}")
    plans: tuple[RankedPlan, ...] = answer.plans
    if not plans:
        return _Found(None, "", answer.status)
    best = plans[0]
    return _Found(
        step_s=best.estimate.step_time_s.value,
        layout=packed_layout(best.layout),
        status=answer.status,
        device_gib=best.estimate.memory.peak_device_gib.value,
    )

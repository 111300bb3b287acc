"""Plans worth a short run as launch folders, with one script for all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.cost.estimate.estimate import estimate
from planner.errors import UnsupportedPlanError
from planner.job.loading import Job
from planner.launch import PlanFile, emit, plan_file
from planner.launch.brief import LaunchFile
from planner.launch.launchers.slurm import START
from planner.launch.text.render import render
from planner.planning.alone import alone
from planner.questions.tuning.manifest import ManifestRun
from planner.specs.answer.result import RankedPlan, Result
from planner.specs.layouts.layout import Layout

SCRIPT = "run-all.sh"
STEPS = 20
"""Steps of a short run, as check.sh makes them. [1]"""
LAUNCHER = "slurm"
"""Launcher whose files a run has beside launch.sh. [text]"""


@dataclass(frozen=True)
class Made:
    """Runs with the files of their folders.

    Attributes:
        runs: Entries of the manifest. [-]
        plans: Plan of each run. [-]
        files: Files of all runs, each under the run's name. [-]
        refused: Reasons why plans became no runs. [text]
    """

    runs: tuple[ManifestRun, ...]
    plans: tuple[PlanFile, ...]
    files: tuple[LaunchFile, ...]
    refused: tuple[str, ...]


def worth_a_run(job: Job, result: Result) -> tuple[RankedPlan, ...]:
    """Plans of which a short run may show that they are best.

    The first choice, then faster plans whose risk of running out of memory is above
    the limit, since their first steps show whether they fit, then the listed plans
    that tie with the fastest.
    """
    tied = {plan.rank for plan in result.tie.plans} if result.tie else set()
    others = [plan for plan in result.plans[1:] if plan.rank in tied]
    return (*result.plans[:1], *_risky(job, result), *others)


def _risky(job: Job, result: Result) -> Iterator[RankedPlan]:
    """Faster plans beyond the limit on the risk, the least risky first."""
    fastest = result.fastest
    if fastest is None or (result.plans and fastest.faster <= 0):
        return
    for at, one in enumerate((*result.riskier, fastest), 1):
        priced = estimate(job.workload_under(one.framework, one.settings), one.layout)
        yield RankedPlan(
            rank=len(result.plans) + at,
            layout=one.layout,
            estimate=priced,
            settings=one.settings,
        )


def made(job: Job, plans: Sequence[RankedPlan], first: int = 1) -> Made:
    """Write the launch folder of every plan."""
    runs: list[ManifestRun] = []
    found: list[PlanFile] = []
    files: list[LaunchFile] = []
    refused: list[UnsupportedPlanError] = []
    for plan in plans:
        its = _plan_file(job, plan)
        run = _run(f"run-{first + len(runs):02}", its, plan)
        try:
            files += _below(run.name, emit(its, LAUNCHER))
        except UnsupportedPlanError as error:
            refused.append(error)
            continue
        runs.append(run)
        found.append(its)
    if plans and not runs:
        emit(_plan_file(job, plans[0]), LAUNCHER)
    said = tuple(str(error) for error in refused)
    return Made(tuple(runs), tuple(found), tuple(files), said)


def _run(name: str, found: PlanFile, plan: RankedPlan) -> ManifestRun:
    framework = found.pricing.framework.name
    return ManifestRun(name=name, framework=framework, settings=plan.settings)


def _plan_file(job: Job, plan: RankedPlan) -> PlanFile:
    workload = job.workload_of(plan)
    lone = alone(job.resolved(plan), plan)
    return plan_file(lone, workload, job.file, job.calibration)


def _below(name: str, files: Sequence[LaunchFile]) -> Iterator[LaunchFile]:
    for file in files:
        yield replace(file, name=f"{name}/{file.name}")


def script(title: str, plans: Sequence[PlanFile]) -> LaunchFile:
    """The script that makes all runs."""
    step = max(found.plan.estimate.step_time_s.high for found in plans)
    minutes = -(-int(START + STEPS * step) // 60)
    text = render(
        f"{SCRIPT}.j2", package="planner.questions.tuning", title=title, minutes=minutes
    )
    return LaunchFile(SCRIPT, text, executable=True)


def is_same(run: ManifestRun, layout: Layout, plan: RankedPlan, framework: str) -> bool:
    """Tell if a plan is a run already, but for the split of its layers.

    Returns:
        True where framework, settings and all but the stages agree.
    """
    bare = [one.model_copy(update={"stages": ()}) for one in (layout, plan.layout)]
    same = (run.framework, run.settings) == (framework, plan.settings)
    return same and bare[0] == bare[1]

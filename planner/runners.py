"""Which frameworks and stacks run a pipeline schedule."""

from collections.abc import Sequence

from planner.errors import BadInputError, did_you_mean
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import read_stack, stack_names
from planner.schedules import SCHEDULES
from planner.specs.framework import Framework


def refuse_schedules(
    wanted: Sequence[str], frameworks: Sequence[Framework], *, field: str
) -> None:
    """Refuse schedules that are unknown, or of which a job can run none.

    Args:
        wanted: Names that the user gives; any of them will do. [text]
        frameworks: Those that may run the job, each on its stack. [-]
        field: Where the names stand. [text]

    Raises:
        BadInputError: No such schedule, or none that these frameworks run; names
            the nearest, or who runs it.
    """
    for name in wanted:
        if name not in SCHEDULES:
            raise BadInputError(
                f"no such schedule; {did_you_mean(name, SCHEDULES)}",
                field=field,
                value=name,
                allowed=", ".join(SCHEDULES),
            )
    run = {name for framework in frameworks for name in framework.limits.schedules}
    if not wanted or run.intersection(wanted):
        return
    ours = " or ".join(f"{f.name} with stack {f.profile.name}" for f in frameworks)
    raise BadInputError(
        f"{ours} cannot run it; who can: {_told(wanted)}",
        field=field,
        value=", ".join(wanted),
        allowed=", ".join(name for name in SCHEDULES if name in run),
    )


def _told(wanted: Sequence[str]) -> str:
    """Who runs each of some schedules, in words."""
    found = {name: ", ".join(who_runs(name)) or "none here" for name in wanted}
    if len(found) == 1:
        return found[wanted[0]]
    return "; ".join(f"{name}: {who}" for name, who in found.items())


def who_runs(schedule: str) -> tuple[str, ...]:
    """Frameworks that run a schedule, and the stacks of others that do.

    Args:
        schedule: Name of a schedule. [text]

    Returns:
        Names, as a spec has them. [text]
    """
    found = []
    for framework in FRAMEWORKS:
        if schedule in framework.limits.schedules:
            found.append(framework.name)
            continue
        for name in stack_names(framework.name):
            limits = read_stack(framework.name, name).limits.on(framework.limits)
            if schedule in limits.schedules:
                found.append(f"{framework.name} with stack.name {name}")
    return tuple(found)

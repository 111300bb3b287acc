"""A plan becomes a folder that starts the run."""

from collections.abc import Sequence
from dataclasses import replace

from planner.errors import BadInputError, UnsupportedPlanError, did_you_mean
from planner.launch.brief import Brief, LaunchFile, Program
from planner.launch.gaps import require_expressible, require_written
from planner.launch.launchers import LAUNCHERS
from planner.launch.read_plan import PlanFile
from planner.launch.registry import TARGETS
from planner.launch.target import Launcher, Target
from planner.launch.text.environment import environment
from planner.launch.text.nodes import placement_files
from planner.launch.text.readme import readme
from planner.launch.text.render import render
from planner.models.likeness import PLANNED_AS
from planner.specs.answer.result import Plan
from planner.specs.text import json_text

LAUNCH, CHECK, PLAN, README = "launch.sh", "check.sh", "plan.json", "README.md"


def target_names() -> tuple[str, ...]:
    """Names that a plan can be emitted for: frameworks, then launchers."""
    return (*(t.name for t in TARGETS), *(one.name for one in LAUNCHERS))


def emit(found: PlanFile, name: str) -> tuple[LaunchFile, ...]:
    """Write a plan for a target of its own framework.

    A framework's name gives the framework's files and a script for any launcher. A
    launcher's name gives the files of the plan's own framework and of the launcher.

    Args:
        found: The plan. [-]
        name: Name of a target. [text]

    Raises:
        BadInputError: There is no such target.
        InexpressibleError: The target cannot express the plan.
    """
    target, launcher = chosen(found, name)
    if stand_in := found.brief.model.get(PLANNED_AS):
        raise UnsupportedPlanError(
            f"{found.path}: spec.model is planned as {stand_in} and is another "
            "architecture: no target's files would train it"
        )
    assert found.spec.framework == target.framework, "a plan for another framework"
    require_expressible(found, target)
    brief = found.brief
    program = _started(target.write(brief), launcher)
    started = launcher.write(brief, program) if launcher else ()
    scripts = (
        LaunchFile(LAUNCH, _launch(brief, program, target), executable=True),
        LaunchFile(CHECK, _check(brief, program), executable=True),
    )
    placing = placement_files(brief)
    plan = plan_text(PLAN, found.plan)
    every = (*program.files, *scripts, *placing, *started, plan)
    text = readme(brief, program, target, launcher, every)
    return _each_once((LaunchFile(README, text), *every))


def emit_own(found: PlanFile) -> tuple[LaunchFile, ...]:
    """Write a plan for its own framework, by the first target that can express it.

    Raises:
        UnsupportedPlanError: No target of the framework can express the plan, or no
            target is written for the plan's stack.
    """
    require_written([found.pricing], found.path)
    return emit(found, _own(found).name)


def _own(found: PlanFile) -> Target:
    """First target of the plan's framework that can express it, else the first."""
    own = [one for one in TARGETS if one.framework == found.spec.framework]
    return next((one for one in own if not one.gaps(found.brief)), own[0])


def plan_text(name: str, plan: Plan) -> LaunchFile:
    """Write a plan as JSON, for `planner emit` to read."""
    return LaunchFile(name, json_text(plan))


def _started(program: Program, launcher: Launcher | None) -> Program:
    """Let the launcher start the ranks of a program, where the program allows that."""
    starter = launcher.starter if launcher else None
    if starter is None or starter not in program.also:
        return program
    return replace(program, starter=starter, starter_words=())


def chosen(found: PlanFile, name: str) -> tuple[Target, Launcher | None]:
    """Choose the target of a name; for a launcher one that can express the plan."""
    by_name = {target.name: target for target in TARGETS}
    launchers = {launcher.name: launcher for launcher in LAUNCHERS}
    if name in by_name:
        return by_name[name], None
    if name in launchers:
        return _own(found), launchers[name]
    raise BadInputError(
        f"no such target; {did_you_mean(name, target_names())}",
        field="--target",
        value=name,
        allowed=", ".join(target_names()),
    )


def _each_once(files: Sequence[LaunchFile]) -> tuple[LaunchFile, ...]:
    names = [file.name for file in files]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"two files of one name: {twice}"
    return tuple(files)


def _launch(brief: Brief, program: Program, target: Target) -> str:
    return render(
        "launch.sh.j2",
        title=f"{brief.job} with {target.title}",
        nodes=brief.nodes,
        gpus_per_node=brief.gpus_per_node,
        gpus=brief.layout.gpus,
        placed=bool(brief.layout.pools),
        blanks=program.blanks,
        environment=environment(brief, program),
        sources=program.sources,
        command=" \\\n  ".join(
            [*program.starter.words, *program.starter_words, *program.words]
        ),
    )


def _check(brief: Brief, program: Program) -> str:
    step = brief.estimate.step_time_s
    memory = brief.estimate.memory
    return render(
        "check.sh.j2",
        step=f"{step.value:.3f}",
        low=f"{step.low:.3f}",
        high=f"{step.high:.3f}",
        memory=f"{memory.peak_device_gib.value:.1f}",
        capacity=f"{memory.capacity_gib:.1f}",
        words=" ".join(program.check),
        placed=bool(brief.layout.pools),
    )

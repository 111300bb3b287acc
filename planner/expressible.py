"""Checks search limits against the limits of frameworks, before any search."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from planner.cost.workload import Workload
from planner.errors import BadInputError, did_you_mean
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import read_stack, stack_names
from planner.specs.context import cp_family
from planner.specs.framework import Framework
from planner.specs.lacks import Lack
from planner.specs.limits import Limits
from planner.specs.recompute import block_of
from planner.specs.search import SearchSpec, limit_words

WORDED = {
    "schedule": "schedules",
    "order": "orders",
    "recompute": "recompute",
    "cp_kind": "cp_kinds",
}
"""Axes with words as values, and the field of `Limits` that lists those words."""
ONE_CHUNK = frozenset({"1f1b", "gpipe", "zb-h1"})
"""Schedules of one chunk a rank. [text]"""

Rule = Callable[[Limits, SearchSpec], str | None]
"""Says what a framework lacks for the limit on an axis, or None."""


def _known(limits: Limits, axis: str) -> Sequence[str]:
    """Words of an axis, combinations of recomputed modules among them."""
    words: tuple[str, ...] = getattr(limits, WORDED[axis])
    return words + limits.recompute_modules * (axis == "recompute")


def _blocks(search: SearchSpec) -> set[str]:
    """Words of a recompute limit that are blocks, such as `full:2`."""
    return {word for word in search.words("recompute") if block_of(word)}


def _words(axis: str) -> Rule:
    """Rule that a framework has one of the words that an axis is limited to."""

    def lacks(limits: Limits, search: SearchSpec) -> str | None:
        families = {cp_family(word) for word in search.words(axis)}
        for word in _known(limits, axis):
            if search.allows_text(axis, word) or word in families:
                return None
        if axis == "recompute" and limits.recompute_blocks and _blocks(search):
            return None
        return f"of {axis} it has {', '.join(getattr(limits, WORDED[axis]))}"

    return lacks


def _one(axis: str, has: Callable[[Limits], bool], words: str) -> Rule:
    """Rule that a framework has an axis, or that the limit allows a degree of 1."""

    def lacks(limits: Limits, search: SearchSpec) -> str | None:
        return None if has(limits) or search.allows(axis, 1) else words

    return lacks


def _zero(limits: Limits, search: SearchSpec) -> str | None:
    stages = limits.zero_stages
    if any(search.allows("zero_stage", stage) for stage in stages):
        return None
    return f"its ZeRO stages are {' and '.join(map(str, stages))}"


def _sequence_parallel(limits: Limits, search: SearchSpec) -> str | None:
    wanted = search.sp
    if wanted is None or wanted in limits.sequence_parallel or not wanted:
        return None
    return "it has no sequence parallelism"


RULES: dict[str, Rule] = {
    "pp": _one("pp", lambda its: its.pipeline, "it has no pipeline"),
    "vpp": _one(
        "vpp",
        lambda its: its.pipeline and bool(set(its.schedules) - ONE_CHUNK),
        "it has no schedule of several chunks",
    ),
    "ep": _one("ep", lambda its: its.expert_parallel, "it has no expert parallelism"),
    "cp": _one("cp", lambda its: its.context_parallel, "it has no context parallelism"),
    "etp": _one("etp", lambda its: its.expert_tensor, "it has no expert tensor axis"),
    "zero_stage": _zero,
    "sp": _sequence_parallel,
    **{axis: _words(axis) for axis in WORDED},
}
"""Rule of each axis for a framework."""


def lacking(limits: Limits, search: SearchSpec) -> dict[str, str]:
    """The search limits that a framework cannot express.

    Args:
        limits: Limits of the framework. [-]
        search: The user's limits. [-]

    Returns:
        Words for the lack, by axis; empty where the framework lacks nothing. [text]
    """
    given = search.limits()
    found = {axis: RULES[axis](limits, search) for axis in RULES if axis in given}
    return {axis: words for axis, words in found.items() if words is not None}


def able(axis: str, search: SearchSpec) -> tuple[str, ...]:
    """Frameworks that can express the limit on an axis, or else their stacks.

    Args:
        axis: A field of the search block. [text]
        search: The user's limits. [-]

    Returns:
        Names in order of listing, stacks after their framework. [text]
    """
    found: list[str] = []
    for framework in FRAMEWORKS:
        if RULES[axis](framework.limits, search) is None:
            found.append(framework.name)
            continue
        found += [
            f"{framework.name} with stack.name {name}"
            for name, limits in _stacks(framework)
            if RULES[axis](limits, search) is None
        ]
    return tuple(found)


def _stacks(framework: Framework) -> Iterator[tuple[str, Limits]]:
    """Name and limits of each stack of a framework."""
    for name in stack_names(framework.name):
        stack = read_stack(framework.name, name)
        yield name, stack.limits.on(framework.limits)


def refuse_inexpressible(workloads: Sequence[Workload]) -> None:
    """Refuse a limit that no framework of a job can express.

    Args:
        workloads: The job under each framework that may run it. [-]

    Raises:
        BadInputError: Says what the framework lacks, and names those that have it.
    """
    search = workloads[0].search
    lacks = [lacking(workload.framework.limits, search) for workload in workloads]
    for axis, words in lacks[0].items():
        if all(axis in each for each in lacks):
            names = " and ".join(workload.framework.name for workload in workloads)
            wanted = limit_words(axis, search.limits()[axis])
            raise BadInputError(
                f"{names} cannot express {wanted}: {words}; frameworks that can: "
                f"{', '.join(able(axis, search)) or 'none'}",
                field=f"search.{axis}",
            )


def refuse_unknown_words(search: SearchSpec) -> None:
    """Refuse a schedule, order, recompute kind or kind of cp that does not exist.

    Args:
        search: The user's limits. [-]

    Raises:
        BadInputError: A word that no framework has, with the nearest.
    """
    limited = {axis: its for axis, its in WORDED.items() if search.words(axis)}
    for axis, listing in limited.items():
        every = [f.limits for f in FRAMEWORKS]
        every += [limits for f in FRAMEWORKS for _, limits in _stacks(f)]
        known = {word for limits in every for word in _known(limits, axis)}
        known |= _blocks(search) if axis == "recompute" else set()
        shown = {word for limits in every for word in getattr(limits, listing)}
        more = ", full:N or modules with + between them (Megatron-Core)"
        for word in search.words(axis):
            if cp_family(word) not in known:
                raise BadInputError(
                    f"no framework has this; {did_you_mean(word, known)}",
                    field=f"search.{axis}",
                    value=word,
                    allowed=", ".join(sorted(shown)) + more * (axis == "recompute"),
                )


def unwritable(workload: Workload) -> tuple[Lack, ...]:
    """Features of a job that no writer of the framework has words for, in any layout.

    Args:
        workload: The job under one framework. [-]

    Returns:
        Records of the writer that lacks least. Empty where a writer has words for the
        job, or where the stack has no writer. [-]
    """
    every = [
        tuple(lack for lack in writer.lacks(workload.asked) if lack.when is None)
        for writer in workload.framework.writers
    ]
    return min(every, key=len, default=())


def refuse_unwritable(workloads: Sequence[Workload]) -> None:
    """Refuse a job that the writers of its frameworks have no words for.

    Args:
        workloads: The job under each framework and training block. [-]

    Raises:
        BadInputError: Names what each framework lacks, and those that have it.
    """
    lacks = [(workload, unwritable(workload)) for workload in workloads]
    if not all(each for _, each in lacks):
        return
    told = dict.fromkeys(
        f"{workload.framework.name} cannot run this job: {_lacking(each[0])}"
        for workload, each in lacks
    )
    able = {
        framework.name: None
        for framework in FRAMEWORKS
        for workload in workloads
        if not unwritable(_on(workload, framework))
    }
    lack = lacks[0][1][0]
    raise BadInputError(
        f"{'; '.join(told)}; frameworks that can: {', '.join(able) or 'none'}",
        field=lack.field.removeprefix("spec."),
        value=lack.value,
        allowed=lack.allowed or None,
    )


def _on(workload: Workload, framework: Framework) -> Workload:
    return replace(workload, framework=framework)


def _lacking(lack: Lack) -> str:
    return f"{lack.feature} ({lack.field.removeprefix('spec.')} {lack.value})"

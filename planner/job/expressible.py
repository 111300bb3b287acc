"""Checks search limits against the limits of frameworks, before any search."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from planner.cost.workload import Workload
from planner.errors import BadInputError, did_you_mean
from planner.frameworks import FRAMEWORKS
from planner.frameworks.stacks import read_stack, stack_names
from planner.specs.frameworks.framework import Framework
from planner.specs.frameworks.lacks import REFERENCE, Lack
from planner.specs.frameworks.limits import Limits
from planner.specs.layouts.axes import AXES, WORDS, Axis
from planner.specs.layouts.context import cp_family
from planner.specs.layouts.recompute import block_of
from planner.specs.search import SearchSpec, limit_words

BEYOND = ", full:N or modules with + between them (Megatron-Core)"
"""Kinds of recompute beside those with a name of their own. [text]"""
Rule = Callable[[Limits, SearchSpec], str | None]
"""Says what a framework lacks for the limit on an axis, or None."""


def _known(limits: Limits, axis: Axis) -> Sequence[str]:
    """Words of an axis, combinations of recomputed modules among them."""
    words: tuple[str, ...] = getattr(limits, axis.limit)
    return (*words, *limits.recompute_modules) if axis.name == "recompute" else words


def _blocks(search: SearchSpec) -> set[str]:
    """Words of a recompute limit that are blocks, such as `full:2`."""
    return {word for word in search.words("recompute") if block_of(word)}


def _words(axis: Axis) -> Rule:
    """Rule that a framework has one of the words that an axis is limited to."""
    name = axis.name

    def lacks(limits: Limits, search: SearchSpec) -> str | None:
        families = {cp_family(word) for word in search.words(name)}
        for word in _known(limits, axis):
            if search.allows_text(name, word) or word in families:
                return None
        if name == "recompute" and limits.recompute_blocks and _blocks(search):
            return None
        return f"of {name} it has {', '.join(getattr(limits, axis.limit))}"

    return lacks


def _one(axis: Axis) -> Rule:
    """Rule that a framework has an axis, or that the limit allows a degree of 1."""

    def lacks(limits: Limits, search: SearchSpec) -> str | None:
        if getattr(limits, axis.limit) or search.allows(axis.name, 1):
            return None
        return f"it has no {axis.feature}"

    return lacks


def _stages(axis: Axis) -> Rule:
    """Rule that a framework has one of the numbers that an axis is limited to."""

    def lacks(limits: Limits, search: SearchSpec) -> str | None:
        known: tuple[int, ...] = getattr(limits, axis.limit)
        if any(search.allows(axis.name, number) for number in known):
            return None
        return f"its {axis.told} stages are {' and '.join(map(str, known))}"

    return lacks


def _switch(axis: Axis) -> Rule:
    """Rule that a framework has an axis that the user wants on."""

    def lacks(limits: Limits, search: SearchSpec) -> str | None:
        wanted = getattr(search, axis.name)
        can = not wanted or wanted in getattr(limits, axis.limit)
        return None if can else f"it has no {axis.feature}"

    return lacks


def _rule(axis: Axis) -> Rule:
    """Rule of an axis by its kind of values."""
    if axis in WORDS:
        return _words(axis)
    if axis.values:
        return _stages(axis) if axis.is_number else _switch(axis)
    return _one(axis)


RULES = {axis.name: _rule(axis) for axis in AXES if axis.limit}
"""Rule of each axis for a framework."""


def lacking(limits: Limits, search: SearchSpec) -> dict[str, str]:
    """The search limits that a framework cannot express.

    Returns:
        Words for the lack, by axis; empty where the framework lacks nothing. [text]
    """
    given = search.limits()
    found = {axis: RULES[axis](limits, search) for axis in RULES if axis in given}
    return {axis: words for axis, words in found.items() if words is not None}


def able(axis: str, search: SearchSpec) -> tuple[str, ...]:
    """Frameworks that can express the limit on an axis, or else their stacks."""
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
    """Refuse a schedule, order, recompute kind or kind of cp that does not exist."""
    for axis in (axis for axis in WORDS if search.words(axis.name)):
        every = [f.limits for f in FRAMEWORKS]
        every += [limits for f in FRAMEWORKS for _, limits in _stacks(f)]
        known = {word for limits in every for word in _known(limits, axis)}
        known |= _blocks(search) if axis.name == "recompute" else set()
        shown = {word for limits in every for word in getattr(limits, axis.limit)}
        more = BEYOND if axis.name == "recompute" else ""
        for word in search.words(axis.name):
            if cp_family(word) not in known:
                raise BadInputError(
                    f"no framework has this; {did_you_mean(word, known)}",
                    field=f"search.{axis.name}",
                    value=word,
                    allowed=", ".join(sorted(shown)) + more,
                )


def unwritable(workload: Workload) -> tuple[Lack, ...]:
    """Features of a job that no writer of the framework has words for, in any layout.

    Returns:
        Records of the writer that lacks least; of two, of the one that knows pairs with
        a reference. Empty where a writer has words for the
        job, or where the stack has no writer. [-]
    """
    every = [
        tuple(lack for lack in writer.lacks(workload.asked) if lack.when is None)
        for writer in workload.framework.writers
    ]
    return min(every, key=_far, default=())


def _far(lacks: Sequence[Lack]) -> tuple[int, bool]:
    """Order of writers: by how many features lack, then those without pairs."""
    return len(lacks), any(lack.field == REFERENCE for lack in lacks)


def refuse_unwritable(workloads: Sequence[Workload]) -> None:
    """Refuse a job that the writers of its frameworks have no words for.

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
        if framework.name != workload.framework.name
        and not unwritable(_on(workload, framework))
    }
    lack = lacks[0][1][0]
    raise BadInputError(
        f"{'; '.join(told)}; frameworks that can: {', '.join(able) or 'none'}",
        field=lack.field.removeprefix("spec."),
        value=lack.value,
        allowed=lack.allowed or None,
    )


def _on(workload: Workload, framework: Framework) -> Workload:
    """The job on another framework's usual stack, with the attention it asks for."""
    asked = {k: v for k, v in workload.framework.words.items() if k == "attention"}
    return replace(workload, framework=replace(framework, words=asked))


def _lacking(lack: Lack) -> str:
    return f"{lack.feature} ({lack.field.removeprefix('spec.')} {lack.value})"

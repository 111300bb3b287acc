"""The scope of a proof: what the default space leaves out, and what that may bring."""

from collections.abc import Iterator, Sequence

from planner.cost.memory.recompute_modules import combinations
from planner.cost.workload import Workload
from planner.job.variants import variants
from planner.search.bounds.floor import step_floor
from planner.search.space.schedules import ON_REQUEST
from planner.search.space.space import (
    MOST_DEFAULT_CONTEXT,
    MOST_DEFAULT_MICRO_BATCH,
)
from planner.specs.answer.left_out import LeftOut
from planner.specs.answer.result import Result
from planner.specs.search import SearchSpec


def with_scope(workloads: Sequence[Workload], found: Result) -> Result:
    """Say what a search of the default space did not look at.

    No layout of any space is faster than the GPUs multiply the model's own products,
    so that time bounds the full space at once.

    Returns:
        The answer with the rules, and with the most that the full space may bring.
    """
    if workloads[0].search.space != "default" or found.objective.name != "throughput":
        return found
    rules = {rule: None for job in workloads for rule in left_out(job)}
    more = {"left_out": tuple(rules), "full_faster": _most(workloads, found)}
    return found.model_copy(update={"search": found.search.model_copy(update=more)})


def _most(workloads: Sequence[Workload], found: Result) -> float | None:
    """Throughput of the bound over that of the best, minus 1; None without one. [1]."""
    if found.objective.value <= 0:
        return None
    tokens = workloads[0].training.step_tokens
    floor = min(map(step_floor, variants(workloads)))
    if floor <= 0:
        return None
    return max(tokens / floor / found.objective.value - 1, 0.0)


def left_out(workload: Workload) -> Iterator[LeftOut]:
    """Rules by which the default space of a job is smaller than the full space.

    An axis that the user limits holds what the user names, and is not listed.
    """
    limits, search = workload.framework.limits, workload.search
    if limits.context_parallel and search.cp_kind is None:
        names = limits.cp_kinds[1:]
        yield from _rule("cp_kind", names, f"{limits.cp_kinds[0]} is the usual kind")
    if search.schedule is None:
        names = tuple(n for n in ON_REQUEST if n in limits.schedules)
        yield from _rule("schedule", names, "a job asks for them by name")
    if search.recompute is None:
        yield from _recompute(workload)
    if limits.expert_tensor and workload.model.expert_parameters > 0:
        yield from _numbers(search, "etp", "degrees that do not divide tp", _RARE)
    yield from _degrees(workload)


_RARE = "seldom better, and many"


def _recompute(workload: Workload) -> Iterator[LeftOut]:
    limits = workload.framework.limits
    usual = (*limits.recompute, *limits.recompute_recipes)
    names = tuple(name for name in combinations(workload) if name not in usual)
    yield from _rule("recompute", names, "combinations of modules are many")
    if workload.framework.limits.recompute_blocks:
        why = "the first layers of every stage alone, on the even split"
        yield LeftOut(axis="recompute", names=("full:N",), why=why)


def _degrees(workload: Workload) -> Iterator[LeftOut]:
    """Numbers that only the full space has."""
    search = workload.search
    wide = "groups over two scale-up domains"
    yield from _numbers(search, "tp", wide, "exchanges of every layer leave the domain")
    if workload.framework.limits.context_parallel:
        more = f"above {MOST_DEFAULT_CONTEXT}"
        yield from _numbers(search, "cp", more, _RARE)
    if workload.framework.limits.pipeline:
        gaps = "chunks that leave a rank's place empty"
        yield from _numbers(search, "vpp", gaps, _RARE)
        most = "stages of more than ceil(layers / stages) layers"
        yield LeftOut(axis="stages", names=(most,), why=_RARE)
    more = f"above {MOST_DEFAULT_MICRO_BATCH}"
    yield from _numbers(search, "micro_batch", more, "they seldom fit")


def _numbers(search: SearchSpec, axis: str, values: str, why: str) -> Iterator[LeftOut]:
    if getattr(search, axis) is None:
        yield LeftOut(axis=axis, names=(values,), why=why)


def _rule(axis: str, names: tuple[str, ...], why: str) -> Iterator[LeftOut]:
    if names:
        yield LeftOut(axis=axis, names=names, why=why)

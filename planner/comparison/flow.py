"""The flow of `planner compare`: candidates are planned, then held side by side."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from planner.comparison.answer import CandidateAnswer, Comparison, Extra
from planner.comparison.best import best_of, refuse_hopeless
from planner.comparison.candidate import plan_candidate
from planner.comparison.extras import Asked, asked, price_step
from planner.comparison.front import front, is_able, marked
from planner.comparison.read import Sweep
from planner.comparison.store import Store, key_of
from planner.comparison.task import Task

Runner = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]
"""Does one thing with many arguments, and hands back results as they are done."""
Told = TypeVar("Told", bound=BaseModel)


def compare(
    sweep: Sweep,
    run: Runner,
    store: Store,
    *,
    told: Callable[[int, int], None] = lambda _done, _total: None,
) -> Comparison:
    """Plan every candidate, choose the best, and say what more would buy.

    Args:
        sweep: Candidates and question. [-]
        run: Where the work is done: on all cores, or on a Dask cluster. [-]
        store: What is finished stays there. [-]
        told: Called with candidates done and candidates in all. [-]

    Returns:
        The whole answer; where no candidate has a plan, with none as the best. [-]

    Raises:
        BadInputError: Nothing meets the deadline, or the budget pays for nothing.
    """
    started = time.monotonic()
    refuse_hopeless(sweep)
    tasks = sweep.tasks
    keys = [task.key for task in tasks]
    answers = _swept(plan_candidate, tasks, keys, CandidateAnswer, run, store, told)
    candidates = tuple(marked(answers))
    best, why = best_of(sweep, candidates)
    extras = _extras(sweep, best, run, store) if best is not None else ()
    return Comparison(
        title=sweep.title,
        question=sweep.question,
        effort=sweep.effort,
        candidates=candidates,
        best="" if best is None else best.name,
        why_best=why,
        front=front(candidates),
        extras=extras,
        warnings=(*sweep.warnings, *_warnings(candidates)),
        assumptions=_assumptions(sweep, candidates),
        seconds=time.monotonic() - started,
    )


def _swept(
    work: Callable[[Any], Told | None],
    tasks: Sequence[Any],
    keys: Sequence[str],
    kind: type[Told],
    run: Runner,
    store: Store,
    told: Callable[[int, int], None],
) -> list[Told]:
    """Results of all tasks; those on disk are read, the others done and kept."""
    found: dict[int, Told] = {}
    for at, key in enumerate(keys):
        if (kept := _read(store, key, kind)) is not None:
            found[at] = kept
    left = [at for at in range(len(tasks)) if at not in found]
    told(len(found), len(tasks))
    for index, result in run(work, [tasks[at] for at in left]) if left else ():
        if result is not None:
            found[left[index]] = result
            store.keep(keys[left[index]], result.model_dump_json(by_alias=True))
        told(len(found), len(tasks))
    return [found[at] for at in sorted(found)]


def _read(store: Store, key: str, kind: type[Told]) -> Told | None:
    """A kept result; one that cannot be read is as good as none."""
    text = store.read(key)
    if text is None:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        return None


def _extras(
    sweep: Sweep, best: CandidateAnswer, run: Runner, store: Store
) -> tuple[Extra, ...]:
    """What the next dollar buys at the best candidate, the best first."""
    (task,) = (task for task in sweep.tasks if task.name == best.name)
    asks = asked(task, best, sweep.changes)
    keys = [_key(task, ask) for ask in asks]
    found = _swept(price_step, asks, keys, Extra, run, store, lambda _d, _t: None)
    return tuple(sorted(found, key=_rank))


def _key(task: Task, ask: Asked) -> str:
    return key_of(
        {
            "candidate": task.key,
            "step": ask.name,
            "price": str(ask.price),
            "nodes": ask.nodes,
        }
    )


def _rank(extra: Extra) -> tuple[int, float]:
    """What pays for itself, then time by dollar, then time where no price is known."""
    if extra.extra_usd is not None and extra.extra_usd <= 0 < extra.saved_s:
        return 0, extra.extra_usd
    if extra.saved_s_per_usd is not None:
        return 1, -extra.saved_s_per_usd
    return 2, -extra.saved_s


def _warnings(candidates: Sequence[CandidateAnswer]) -> tuple[str, ...]:
    """What of the answers is no more than it seems."""
    said = []
    for one in candidates:
        if one.unmeasured and one.plan is not None:
            what = ", ".join(one.unmeasured)
            said.append(
                f"{one.name}: {what} of {one.gpu} never measured, a relative's are "
                f"taken; its {one.interval_from}"
            )
        if one.plan is not None and one.plan.estimate.memory.verdict != "fits":
            said.append(f"{one.name}: its plan is {one.plan.estimate.memory.verdict}")
    return tuple(said)


def _assumptions(
    sweep: Sweep, candidates: Sequence[CandidateAnswer]
) -> tuple[str, ...]:
    """What all figures rest on, each sentence once."""
    effort = sweep.effort
    search = (
        f"a search ends when no plan can be faster by {effort.tolerance:.2g}, or with "
        f"its part of {effort.time_limit_s:g} s for each candidate; the gap says how "
        "much faster a step may be; node counts between those planned are left out"
    )
    runs = [one.run for one in candidates if one.run is not None and is_able(one)]
    shared = [set(run.assumptions) for run in runs]
    common = set.intersection(*shared) if shared else set()
    lines = runs[0].assumptions if runs else ()
    return (search, *(line for line in lines if line in common))

"""The flow of `planner compare`: candidates are planned, then held side by side."""

import time
from collections.abc import Callable, Sequence

from planner.planning.comparison.answer import CandidateAnswer, Comparison, Extra
from planner.planning.comparison.candidates.candidate import plan_candidate
from planner.planning.comparison.candidates.extras import Asked, asked, price_step
from planner.planning.comparison.candidates.task import Task
from planner.planning.comparison.choice.best import best_of, offers, refuse_hopeless
from planner.planning.comparison.choice.front import front, is_able, marked
from planner.planning.comparison.choice.quotes import over_the_quotes, quotes_behind
from planner.planning.comparison.choice.race import (
    Race,
    key_for,
    least_of,
    run_race,
    value_of,
)
from planner.planning.comparison.read import Sweep
from planner.planning.comparison.results import Runner, results_of
from planner.planning.comparison.store import Store, key_of

ROUNDS = 6
"""Rounds of races between candidates, at most. [1]"""


def compare(
    sweep: Sweep,
    run: Runner,
    store: Store,
    *,
    told: Callable[[int, int], object] = lambda _done, _total: None,
) -> Comparison:
    """Plan every candidate, choose the best, and say what more would buy.

    Returns:
        The whole answer; the best is empty where no candidate has a plan. [-]

    Raises:
        BadInputError: Nothing meets the deadline, or the budget pays for nothing.
    """
    started = time.monotonic()
    refuse_hopeless(sweep)
    tasks = sweep.tasks
    keys = [task.key for task in tasks]
    answers = results_of(plan_candidate, tasks, keys, CandidateAnswer, run, store, told)
    raced = _raced(sweep, answers, run, store)
    candidates = tuple(marked(_apart(sweep, raced)))
    best, why = best_of(sweep, candidates)
    extras = _extras(sweep, best, run, store) if best is not None else ()
    return Comparison(
        title=sweep.title,
        question=sweep.question,
        effort=sweep.effort,
        candidates=candidates,
        best="" if best is None else best.name,
        why_best=_verdict(why, best, candidates),
        over_quotes=over_the_quotes(sweep, candidates, best) if best else "",
        front=front(candidates),
        extras=extras,
        warnings=(*sweep.warnings, *_warnings(candidates)),
        assumptions=_assumptions(sweep, candidates),
        seconds=time.monotonic() - started,
    )


def _raced(
    sweep: Sweep, answers: Sequence[CandidateAnswer], run: Runner, store: Store
) -> list[CandidateAnswer]:
    """The candidates, searched on until bounds tell which offer is the best.

    In each round, candidates that may beat the best offer are searched for a better
    offer. The rounds end when none may, or when all open ones were searched against
    the best offer.
    """
    known, asked_of = list(answers), set[tuple[str, float]]()
    for _ in range(ROUNDS):
        races = _open_races(sweep, known, asked_of)
        if not races:
            break
        keys = [_race_key(race) for race in races]
        found = results_of(
            run_race, races, keys, CandidateAnswer, run, store, lambda _d, _t: None
        )
        by_name = {one.name: one for one in found}
        known = [by_name.get(one.name, one) for one in known]
    return known


def _open_races(
    sweep: Sweep,
    candidates: Sequence[CandidateAnswer],
    asked_of: set[tuple[str, float]],
) -> list[Race]:
    """Candidates that may beat the best offer and were not searched for that yet."""
    key = key_for(sweep.question, candidates)
    best, rivals = _standing(sweep, candidates)
    if best is None:
        return []
    value = value_of(best, key)
    tasks = {task.name: task for task in sweep.tasks}
    races = [
        Race(tasks[one.name], one, key, value)
        for one in rivals
        if (one.name, value) not in asked_of and one.nodes is not None
    ]
    asked_of.update((race.task.name, value) for race in races)
    return races


def _standing(
    sweep: Sweep, candidates: Sequence[CandidateAnswer]
) -> tuple[CandidateAnswer | None, list[CandidateAnswer]]:
    """The best offer, and those that may be better as far as was proven."""
    key = key_for(sweep.question, candidates)
    able = offers(sweep, [one for one in candidates if is_able(one)])
    best = min(able, key=lambda one: value_of(one, key), default=None)
    if best is None:
        return None, []
    value = value_of(best, key)
    over = best.within_budget is not False
    rivals = [
        one
        for one in candidates
        if one is not best
        and least_of(one, key) < value
        and not (over and one.within_budget is False)
    ]
    return best, rivals


def _apart(
    sweep: Sweep, candidates: Sequence[CandidateAnswer]
) -> list[CandidateAnswer]:
    """Candidates; those that may be better than the best offer are not settled."""
    best, rivals = _standing(sweep, candidates)
    if best is None:
        return list(candidates)
    open_ = {one.name for one in rivals}
    why = f"it may be better than {best.name}, as far as was proven"
    return [
        one.model_copy(update={"settled": False, "unsettled": one.unsettled or why})
        if one.name in open_
        else one
        for one in candidates
    ]


def _race_key(race: Race) -> str:
    return key_of(
        {
            "candidate": race.task.key,
            "answer": race.answer.model_dump(mode="json"),
            "race": race.key,
            "value": race.value,
        }
    )


def _extras(
    sweep: Sweep, best: CandidateAnswer, run: Runner, store: Store
) -> tuple[Extra, ...]:
    """Steps that the next dollar buys at the best candidate, the best first."""
    (task,) = (task for task in sweep.tasks if task.name == best.name)
    asks = asked(task, best, sweep.changes)
    keys = [_key(task, ask) for ask in asks]
    found = results_of(price_step, asks, keys, Extra, run, store, lambda _d, _t: None)
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
    """Sort key: steps that pay for themselves, by time per dollar, by time saved."""
    if extra.extra_usd is not None and extra.extra_usd <= 0 < extra.saved_s:
        return 0, extra.extra_usd
    if extra.saved_s_per_usd is not None:
        return 1, -extra.saved_s_per_usd
    return 2, -extra.saved_s


def _verdict(
    why: str, best: CandidateAnswer | None, candidates: Sequence[CandidateAnswer]
) -> str:
    """Reason for the best, and the rates and quotes that it rests on."""
    if best is None:
        return why
    parts = (why, borrowed_rates(candidates), quotes_behind(candidates))
    return "; ".join(filter(None, parts))


def borrowed_rates(candidates: Sequence[CandidateAnswer]) -> str:
    """Rates behind a verdict that were measured on other chips, in words."""
    behind = [
        f"{', '.join(one.unmeasured)} of {one.name}"
        for one in candidates
        if one.unmeasured and one.plan is not None
    ]
    if not behind:
        return "every rate behind it was measured on its chip"
    return f"borrowed from other chips behind it: {'; '.join(behind)}"


def _warnings(candidates: Sequence[CandidateAnswer]) -> tuple[str, ...]:
    """Warnings: not settled, not measured, or a plan that may not fit."""
    said = [
        f"{one.name} is not settled: {one.unsettled}; it wins and loses nothing, and "
        f"more --effort may settle it"
        for one in candidates
        if not one.settled
    ]
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
    """Assumptions behind all figures, each sentence once."""
    effort = sweep.effort
    limit = "" if effort.time_limit_s is None else ", or at the time limit"
    search = (
        f"a search ends when no plan can be faster by {effort.tolerance:.2g}, or with "
        f"its part of {effort.work:,.0f} visits of a layout for each candidate{limit}; "
        "the gap says how much faster a step may be; what is open between candidates "
        "is searched further, and what stays open is called not settled"
    )
    runs = [one.run for one in candidates if one.run is not None and is_able(one)]
    shared = [set(run.assumptions) for run in runs]
    common = set.intersection(*shared) if shared else set()
    lines = runs[0].assumptions if runs else ()
    return (search, *(line for line in lines if line in common))

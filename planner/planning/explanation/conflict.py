"""A minimal set of limits that cannot hold together, by deletion filtering."""

from collections.abc import Callable, Sequence
from itertools import chain

from planner.job.case import Case
from planner.planning.explanation.ask import Answer, fewest_nodes, fits, is_legal, least
from planner.planning.explanation.changes import GIB, Clock, with_capacity
from planner.planning.explanation.limits import (
    GPUS,
    MEMORY,
    InForce,
    lifted,
    limits_in_force,
    other_sizes,
)
from planner.specs.answer.explanation import Limit, Need

Question = Callable[[Case], Answer]
"""Tells if a job is feasible."""
SHARPNESS = 0.005
"""Share by which a proof may fall short of the least memory known. [1]"""
STEP_BACK = 0.02
"""Share taken off at a try that finds a plan or comes to no end. [1]"""
NO_DIVISOR = frozenset({"training.optimizer", "training.method", MEMORY})
"""Limits that no rule of legality reads. [text]"""
TRIES = 4
"""Capacities that are searched for a proof. [1]"""


def legal_conflict(case: Case) -> tuple[Limit, ...]:
    """A minimal set of limits that leaves no legal layout."""
    every = [each for each in limits_in_force(case) if each.field not in NO_DIVISOR]
    given = [each for each in every if each.field.startswith("search.")]
    others = [each for each in every if each not in given]
    dropped: list[InForce] = []
    kept = _needed(case, others, dropped) + _needed(case, given, dropped)
    return tuple(limit.limit for limit in every if limit in kept)


def _needed(
    case: Case, limits: Sequence[InForce], dropped: list[InForce]
) -> list[InForce]:
    """Limits that have to stay, after the decision on all limits before them.

    Equals the deletion of limits one by one: a job without a legal layout under fewer
    limits has none under more. So several redundant limits go by one question.

    Args:
        case: A job without a legal layout. [-]
        limits: Limits to look at, in order. [-]
        dropped: Redundant limits so far; redundant ones of `limits` are added. [-]
    """
    if not limits:
        return []
    without = [*dropped, *limits]
    free = any(each.field == GPUS for each in without)
    question = _legality_of_any_size if free else _legality
    if _under(case, without, question) is not Answer.FITS:
        dropped += limits
        return []
    if len(limits) == 1:
        return list(limits)
    half = len(limits) // 2
    first = _needed(case, limits[:half], dropped)
    return first + _needed(case, limits[half:], dropped)


def memory_conflict(case: Case, clock: Clock) -> tuple[tuple[Limit, ...], bool]:
    """A minimal set of limits under which nothing fits.

    Args:
        case: A job of which no layout fits. [-]
        clock: Time for all searches. [s]

    Returns:
        Limits, and True if every search behind them came to an end.
    """
    every = limits_in_force(case)
    parts = len(every)

    def own_size(changed: Case) -> Answer:
        return fits(changed, clock.share(parts))

    def any_size(changed: Case) -> Answer:
        answer = own_size(changed)
        larger = answer is not Answer.FITS and fewest_nodes(changed) is not None
        return Answer.FITS if larger else answer

    return _filtered(case, every, own_size, any_size)


def _filtered(
    case: Case, every: Sequence[InForce], own_size: Question, any_size: Question
) -> tuple[tuple[Limit, ...], bool]:
    """Drop each limit in turn without which the job stays infeasible.

    The limits that stay are minimal by inclusion. A limit stayed because the job
    without it was feasible, and dropping more limits cannot undo that.
    """
    kept, dropped, proven = list(every), list[InForce](), True
    for limit in every:
        without = [*dropped, limit]
        free = any(each.field == GPUS for each in without)
        answer = _under(case, without, any_size if free else own_size)
        if answer is Answer.FITS:
            continue
        proven = proven and answer is not Answer.UNKNOWN
        kept.remove(limit)
        dropped.append(limit)
    return tuple(limit.limit for limit in kept), proven


def _under(case: Case, dropped: Sequence[InForce], question: Question) -> Answer:
    """The best answer over the ways to lift limits."""
    answers = []
    for changed in lifted(case, dropped):
        answers.append(question(changed))
        if answers[-1] is Answer.FITS:
            return Answer.FITS
    return Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.NO_FIT


def _legality(case: Case) -> Answer:
    return Answer.FITS if is_legal(case) else Answer.ILLEGAL


def _legality_of_any_size(case: Case) -> Answer:
    sizes = chain([case], other_sizes(case))
    return Answer.FITS if any(map(is_legal, sizes)) else Answer.ILLEGAL


def least_memory(case: Case, clock: Clock) -> Need | None:
    """The least memory of the whole space: proven from below, known from above.

    The most frugal layout known is the upper end. The lower end is a capacity at
    which the search of the whole space finds nothing, sought within half a per cent
    of the upper.

    Args:
        case: A job of which no layout fits. [-]
        clock: Time for all searches. [s]

    Returns:
        Both ends and the fullest stage; None without a legal layout. [GiB]
    """
    held = least(case)
    if held is None:
        return None
    low, high = held.memory.capacity_gib, held.memory.peak_device_gib.value
    wanted = high * (1 - SHARPNESS)
    for turn in range(TRIES):
        if wanted <= low:
            break
        smaller = case.edited(with_capacity(wanted * GIB))
        answer = fits(smaller, clock.share(TRIES - turn))
        if answer is Answer.NO_FIT:
            low = wanted
            break
        if answer is Answer.FITS:
            high = wanted
        wanted -= (turn + 1) * STEP_BACK * high
    worst = max(held.memory.stages, key=lambda stage: stage.device)
    return Need(
        stage=worst.stage,
        at_least_gib=low,
        reached_gib=high,
        capacity_gib=held.memory.capacity_gib,
    )

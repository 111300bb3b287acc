"""Yes or no: is there a legal layout, and does one fit."""

from collections.abc import Callable
from enum import Enum

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.explain.case import Case
from planner.frugal import Held, fewest_gpus, most_frugal
from planner.search.best_first import search_all
from planner.search.emptiness import easiest, is_empty
from planner.search.outcome import Progress, SearchOutcome
from planner.variants import variants


class Answer(Enum):
    """What is known of a job."""

    FITS = "fits"
    NO_FIT = "no fit"
    ILLEGAL = "illegal"
    UNKNOWN = "unknown"


class _EnoughError(Exception):
    """A plan was found, and one is enough."""


def variants_of(case: Case) -> tuple[Workload, ...]:
    """Every variant of a job.

    Args:
        case: The job. [-]

    Returns:
        Variants; none where a setting of it is refused. [-], shape (variants,)
    """
    try:
        return variants(case.workloads)
    except BadInputError:
        return ()


def is_legal(case: Case) -> bool:
    """Whether any layout is legal, whatever it holds.

    Args:
        case: The job. [-]

    Returns:
        True where some variant's space has a candidate.
    """
    return any(not is_empty(variant) for variant in easiest(variants_of(case)))


def fits(case: Case, seconds: float) -> Answer:
    """Whether any legal layout fits.

    The most frugal layouts are looked at first; where none of them fits, the whole
    space is searched until one does or all are ruled out.

    Args:
        case: The job. [-]
        seconds: Time for the search. [s]

    Returns:
        The answer; unknown where the time ended first.
    """
    every = variants_of(case)
    if any(_frugal_fits(variant) for variant in every):
        return Answer.FITS
    if not every:
        return Answer.ILLEGAL
    try:
        outcomes = search_all(every, top=1, time_limit=seconds, progress=_stop_at_first)
    except _EnoughError:
        return Answer.FITS
    return _answer(outcomes)


def _frugal_fits(variant: Workload) -> bool:
    held = most_frugal(variant, enough=True)
    return held is not None and held.fits


def _stop_at_first(state: Progress) -> None:
    if state.incumbent_s is not None:
        raise _EnoughError


def _answer(outcomes: list[SearchOutcome]) -> Answer:
    if any(outcome.ranked for outcome in outcomes):
        return Answer.FITS
    if not any(outcome.candidates for outcome in outcomes):
        return Answer.ILLEGAL
    ruled_out = min(outcome.bound_s for outcome in outcomes) == float("inf")
    return Answer.NO_FIT if ruled_out else Answer.UNKNOWN


def least(case: Case) -> Held | None:
    """The most frugal layout over the variants of a job.

    Args:
        case: The job. [-]

    Returns:
        Layout and memory; none without a legal one. [-]
    """
    found = [held for v in variants_of(case) if (held := most_frugal(v)) is not None]
    return min(found, key=lambda h: h.memory.peak_device_gib.value, default=None)


def fewest_nodes(case: Case) -> int | None:
    """The smallest cluster of these nodes that holds the job.

    Args:
        case: The job; its own number of nodes plays no part. [-]

    Returns:
        Whole nodes; none where no size does, or none was found. [1]

    Leaves out layouts that a rough count ranks behind the most frugal ones, and of
    each framework all settings but those that hold least on the job's own cluster.
    """
    found = [_quietly(fewest_gpus, variant) for variant in _frugal_variants(case)]
    sizes = [held.layout.gpus for held in found if held is not None]
    if not sizes:
        return None
    return -(-min(sizes) // case.workloads[0].topology.cluster.node.gpus_per_node)


def _frugal_variants(case: Case) -> list[Workload]:
    """Of each framework the variant that holds least on the job's own cluster."""
    best: dict[str, tuple[float, Workload]] = {}
    for variant in variants_of(case):
        held = _quietly(most_frugal, variant)
        peak = float("inf") if held is None else held.memory.peak_device_gib.value
        name = variant.framework.name
        if name not in best or peak < best[name][0]:
            best[name] = peak, variant
    return [variant for _, variant in best.values()]


def _quietly(look: Callable[[Workload], Held | None], variant: Workload) -> Held | None:
    """A look that some sizes of a cluster refuse."""
    try:
        return look(variant)
    except BadInputError:
        return None

"""Yes or no: is any layout of a job legal, and does any legal layout fit."""

from collections.abc import Callable
from enum import Enum

from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.job.case import Case
from planner.planning.capacity.leanest import Held, fewest_gpus, leanest
from planner.search.best_first import search_all
from planner.search.emptiness import has_legal
from planner.search.outcome import Progress, SearchOutcome


class Answer(Enum):
    """Answer to the question if any layout of a job fits."""

    FITS = "fits"
    NO_FIT = "no fit"
    ILLEGAL = "illegal"
    UNKNOWN = "unknown"


class _EnoughError(Exception):
    """A plan was found, so the search can end."""


def variants_of(case: Case) -> tuple[Pricing, ...]:
    """Every variant of a job.

    Returns:
        Variants; none where a setting of the job is refused. [-], shape (variants,)
    """
    try:
        return case.variants
    except BadInputError:
        return ()


def is_legal(case: Case) -> bool:
    """Tell if any layout is legal, whatever memory it needs.

    Returns:
        True where some variant's space has a candidate.
    """
    return has_legal(variants_of(case))


def fits(case: Case, seconds: float) -> Answer:
    """Tell if any legal layout fits.

    The most frugal layouts are looked at first. Where none of them fits, the whole
    space is searched until a layout fits or all are ruled out.

    Args:
        case: The job. [-]
        seconds: Time for the search. [s]
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


def _frugal_fits(variant: Pricing) -> bool:
    held = leanest(variant, enough=True)
    return held is not None and held.fits and _admitted(variant, held)


def _admitted(variant: Pricing, held: Held) -> bool:
    """True where the limit on the risk admits a layout, or there is none."""
    chance = held.memory.oom_probability or 0.0
    return variant.risk is None or chance <= variant.risk


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

    Returns:
        Layout and memory; None without a legal layout. [-]
    """
    found = [held for v in variants_of(case) if (held := leanest(v)) is not None]
    return min(found, key=lambda h: h.memory.peak_device_gib.value, default=None)


def fewest_nodes(case: Case) -> int | None:
    """The smallest cluster of the job's nodes that holds the job.

    Returns:
        Whole nodes; None where no number of nodes holds the job, or none was found.
        [1]

    Leaves out layouts that a rough count ranks behind the most frugal ones, and of
    each framework all settings but those that hold least on the job's own cluster.
    """
    found = [_quietly(fewest_gpus, variant) for variant in _frugal_variants(case)]
    sizes = [held.layout.gpus for held in found if held is not None]
    if not sizes:
        return None
    return -(-min(sizes) // case.workloads[0].topology.cluster.node.gpus_per_node)


def _frugal_variants(case: Case) -> list[Pricing]:
    """Variant of each framework with the least peak memory on the job's cluster."""
    best: dict[str, tuple[float, Pricing]] = {}
    for variant in variants_of(case):
        held = _quietly(leanest, variant)
        peak = float("inf") if held is None else held.memory.peak_device_gib.value
        name = variant.framework.name
        if name not in best or peak < best[name][0]:
            best[name] = peak, variant
    return [variant for _, variant in best.values()]


def _quietly(look: Callable[[Pricing], Held | None], variant: Pricing) -> Held | None:
    """The result of a look; None where the job is refused."""
    try:
        return look(variant)
    except BadInputError:
        return None

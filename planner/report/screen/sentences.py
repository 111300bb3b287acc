"""Rows of a screen, each a sentence or two on one subject."""

import re
from collections.abc import Iterator

from planner.planning.reasons import costs_words, fullest_words
from planner.report.screen.verdict import three_digits
from planner.report.sections.run import run_rows
from planner.report.vocabulary import amount_words, host_words, likely_words, odds_words
from planner.specs.answer.estimate import Estimate, MemoryEstimate
from planner.specs.answer.result import Explanation, RankedPlan, Result
from planner.specs.answer.run import Run
from planner.specs.layouts.layout_text import layout_rows, plan_difference
from planner.specs.search import SearchSpec, limit_words

AXES = 5
"""Rows of a layout that begin with the axis: tensor to data. [1]"""
TELLING = 0.25
"""Largest gain that a bound leaves open and that is worth a word. [1]"""
NEXT = ("step", "slower", "GiB", "risk", "what differs")
"""Titles above the next best plans."""


def layout_sentences(plan: RankedPlan, told: Explanation) -> Iterator[str]:
    """A layout, reasons for idle GPUs, and reasons to leave the fastest."""
    yield _layout(plan)
    yield from told.binding[1:]
    if plan.slower > 0:
        yield told.runner_up
    if told.needed:
        yield told.needed


def _layout(plan: RankedPlan) -> str:
    """Parts of a layout, without axes that divide nothing."""
    rows = layout_rows(plan.layout)
    axes = [value for _, value in rows[:AXES] if _divides(value)]
    others = [f"{name} {value}" for name, value in rows[AXES:]]
    parts = [*(axes or ["one GPU"]), *others, *filter(None, [plan.chosen])]
    return "; ".join(parts)


def _divides(value: str) -> bool:
    return any(number != "1" for number in re.findall(r"\d+", value))


def memory_words(memory: MemoryEstimate) -> str:
    """Memory of the fullest GPU against its limit, with the risk.

    Args:
        memory: Peak memory. [GiB]
    """
    peak, most = memory.peak_device_gib, fullest_words(memory)
    interval = f"{peak.low:.1f} to {peak.high:.1f}"
    odds = f", {odds_words(memory)}" if odds_words(memory) else ""
    return (
        f"{peak.value:.1f} of {memory.capacity_gib:.1f} GiB on the fullest GPU "
        f"({interval}){odds}; {most}{host_words(memory)}"
    )


def time_words(estimate: Estimate) -> str:
    """Largest costs of a step, its throughput and utilisation."""
    kernels, others = costs_words(estimate)
    mfu = estimate.mfu
    return (
        f"kernels {kernels} of the step, {others}; "
        f"{estimate.tokens_per_s_per_gpu:,.0f} tokens/s per GPU, "
        f"MFU {mfu.full_attention:.1%} with full attention, "
        f"{mfu.causal_attention:.1%} causal{_padding(estimate)}"
    )


def _padding(estimate: Estimate) -> str:
    """Cost of padding, where the job says how long its texts are."""
    return f"; {estimate.padding.words}" if estimate.padding else ""


def next_rows(result: Result) -> tuple[tuple[str, ...], ...]:
    """The next best plans: step, distance, memory, risk, and what differs."""
    best, *others = result.plans
    tied = {plan.rank for plan in result.tie.plans} if result.tie else set()
    return tuple(
        (
            f"{three_digits(plan.estimate.step_time_s.value)} s",
            _slower(plan, is_tied=plan.rank in tied),
            f"{plan.estimate.memory.peak_device_gib.value:.1f}",
            risk_words(plan.estimate.memory),
            plan_difference(plan, best),
        )
        for plan in others
    )


def _slower(plan: RankedPlan, *, is_tied: bool) -> str:
    """Distance from the fastest, a tie, and the odds that it is slower."""
    odds = [] if plan.likely is None else [likely_words(plan.likely)]
    told = ", ".join([*(["tie"] if is_tied else []), *odds])
    return f"{plan.slower:.2%}{f' ({told})' if told else ''}"


def risk_words(memory: MemoryEstimate) -> str:
    """Probability that a plan does not fit."""
    chance = memory.oom_probability
    if chance is None:
        return memory.verdict
    return f"{chance:.0%}" if chance >= 0.01 else "under 1%"


def proof_words(result: Result) -> str:
    """Guarantee of a search in a line.

    gap = bound / value - 1 for a throughput.
    """
    search, gap = result.search, result.objective.gap
    over = f" of {search.variants} settings" if search.variants > 1 else ""
    effort = f"{search.space:,} layouts{over}"
    told = "0" if gap < 5e-5 else f"{gap:.2%}"
    opening = {
        "optimal": f"Optimal in {_space(result)}: {effort}, gap {told}",
        "feasible": f"Not proven: at most {gap:.2%} from the best of {effort}",
        "infeasible": f"Proven in {_space(result)}: none of {effort} {_fits(result)}",
        "unknown": f"Not proven: of {effort} none is known to fit",
    }[result.status]
    most = full_words(result)
    return f"{opening}, {search.seconds:.1f} s{most}.{_amount(result)}"


def _amount(result: Result) -> str:
    """Least amount with its bound; empty for the fastest plan. [text]."""
    its = result.objective
    if its.name == "throughput" or not result.plans:
        return ""
    value, bound = (amount_words(its, which) for which in ("value", "bound"))
    return f" Least {its.name}: {value}, none below {bound}."


def _fits(result: Result) -> str:
    return "fits" if result.fastest is None else "is within the limit on the risk"


def full_words(result: Result) -> str:
    """Most that the full space may bring, where it was not searched.

    Returns:
        The end of a sentence; empty where nothing was left out. [text]
    """
    if not result.search.left_out or result.status != "optimal":
        return ""
    most = result.search.full_faster
    told = "" if most is None or most > TELLING else f", at most {most:.1%} faster"
    return f"; full space: not searched (--set search.space=full){told}"


def _space(result: Result) -> str:
    """The space that was searched, with the user's limits."""
    fields = result.spec.get("search", {})
    spec = SearchSpec.model_validate(fields, strict=False)
    limits = ", ".join(limit_words(*pair) for pair in spec.limits().items())
    return f"the {spec.space} space" + (f" ({limits})" if limits else "")


def run_sentence(run: Run) -> str:
    """Time, share that trains, GPU-hours, cost and energy of a run."""
    told = dict(run_rows(run))
    return "; ".join(_run_parts(told))


def _run_parts(told: dict[str, str]) -> Iterator[str]:
    yield f"trains {told['effective share']}"
    yield f"{told['GPU-hours']} GPU-hours"
    yield told["cost"]
    yield told["energy"]

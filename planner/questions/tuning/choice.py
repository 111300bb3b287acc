"""The choice of the next run to make, and of the moment to stop."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from statistics import NormalDist

from planner.questions.tuning.belief import Belief, Predicted, believe
from planner.questions.tuning.risk import risks_after

WORTH = 0.0025
"""Expected gain below which no run is made: a quarter of the noise of a run. [1]"""
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Standing:
    """Knowledge of one plan.

    Attributes:
        name: Name of its run. [text]
        expected_s: Step as predicted and measured together. [s]
        risk: Probability that it runs out of memory, given the runs made. [1]
        faster: Probability that it fits and is faster than the best measured plan; None
            for that plan, and before the first measurement. [1]
        gain: Step that a measurement is expected to save, as a share of the best
            measured step; None for a plan that was tried, and before the first
            measurement. [1]
    """

    name: str
    expected_s: float
    risk: float
    faster: float | None
    gain: float | None


@dataclass(frozen=True)
class Decision:
    """The standings, and the run to make.

    Attributes:
        standings: One for each plan, in the order of the plans. [-]
        best: Name of the best measured plan; None before the first. [text]
        next: Name of the run to make; None where the search is over. [text]
        why: Reason for either, as a clause. [text]
        spread: Median error of a comparison as measured here. [1]
    """

    standings: tuple[Standing, ...]
    best: str | None
    next: str | None
    why: str
    spread: float


def decide(
    plans: Sequence[Predicted],
    measured: Mapping[str, float],
    failed: Collection[str] = (),
    *,
    short: Collection[str] = (),
    budget: int,
    spread: float,
) -> Decision:
    """Choose the run that is expected to improve most on the best measured plan.

    With ``g`` the gain over the best measured plan, of mean ``m`` and deviation ``s``,
    and ``p`` the risk of running out of memory, the expected improvement is
    ``(1 - p) E[max(g, 0)] = (1 - p) (m Phi(m / s) + s phi(m / s))``.

    Args:
        plans: The plans, the first choice first, shape (plans,). [-]
        measured: Measured step of some of them, by name. [s]
        failed: Names of runs that ended without a step. [text]
        short: Names of those that ran out of memory. [text]
        budget: Most runs, failed ones included. [1]
        spread: Median error of a comparison at a difference of one step. [1]
    """
    belief = believe(plans, measured, spread=spread)
    done = [at for at, plan in enumerate(plans) if plan.name in measured]
    best = min(done, key=lambda at: (belief.log_s[at], at), default=None)
    left = [
        at
        for at in range(len(plans))
        if at not in done and plans[at].name not in failed
    ]
    ran_out = [at for at, plan in enumerate(plans) if plan.name in short]
    risks = risks_after([plan.risk for plan in plans], done, ran_out)
    gains = {at: (1 - risks[at]) * improvement(belief, at, best) for at in left}
    spent = len(done) + len(set(failed))
    if best is None and failed:
        chosen, why = _safest(left, risks, budget - spent)
    else:
        chosen, why = _next(gains, best, budget - spent)
    return Decision(
        standings=tuple(
            Standing(
                name=plan.name,
                expected_s=exp(belief.log_s[at]),
                risk=risks[at],
                faster=_beats(belief, at, best, risks[at]),
                gain=None if best is None else gains.get(at),
            )
            for at, plan in enumerate(plans)
        ),
        best=None if best is None else plans[best].name,
        next=None if chosen is None else plans[chosen].name,
        why=why,
        spread=belief.spread,
    )


def _beats(belief: Belief, at: int, best: int | None, risk: float) -> float | None:
    """Probability that a plan fits and is faster than the best measured one. [1]."""
    return None if best in (None, at) else (1 - risk) * chance(belief, at, best)


def _safest(
    left: Sequence[int], risks: Sequence[float], runs: int
) -> tuple[int | None, str]:
    """The run that is likeliest to fit, while none has a step."""
    if not left or runs <= 0:
        return _next(dict.fromkeys(left, 0.0), None, runs)
    at = min(left, key=lambda each: (risks[each], each))
    return at, "it is the likeliest to fit"


def _next(
    gains: Mapping[int, float], best: int | None, runs: int
) -> tuple[int | None, str]:
    """The run to make, or none, and the reason."""
    if not gains:
        return None, "every plan was tried"
    if runs <= 0:
        return None, "the budget of runs is spent"
    if best is None:
        return min(gains), "it is the first choice"
    at = max(gains, key=lambda each: (gains[each], -each))
    told = f"{gains[at]:.2%} of the step"
    if gains[at] < WORTH:
        return None, f"no other run is expected to save more than {told}"
    return at, f"it is expected to save {told}"


def improvement(belief: Belief, at: int, best: int | None) -> float:
    """Share of the best measured step that a measurement is expected to save.

    Args:
        belief: What is known. [-]
        at: Index of a plan that was not measured. [1]
        best: Index of the best measured plan; None before the first. [1]

    Returns:
        Expected improvement; 0 before the first measurement. [1]
    """
    if best is None:
        return 0.0
    mean, width = belief.gain(at, best)
    if width == 0:
        return max(mean, 0.0)
    far = mean / width
    return mean * _NORMAL.cdf(far) + width * _NORMAL.pdf(far)


def chance(belief: Belief, at: int, than: int | None) -> float:
    """Probability that a plan is faster than another."""
    assert than is not None
    mean, width = belief.gain(at, than)
    if width == 0:
        return 0.5 if mean == 0 else 1.0 if mean > 0 else 0.0
    return _NORMAL.cdf(mean / width)

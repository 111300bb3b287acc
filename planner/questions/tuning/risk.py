"""Risk of running out of memory, after what other runs of the job have shown."""

from collections.abc import Collection, Sequence


def risks_after(
    risks: Sequence[float], fitted: Collection[int], short: Collection[int]
) -> tuple[float, ...]:
    """Probabilities to run out of memory, once some plans fitted and others did not.

    Memory that is not counted is off by one factor in all plans of a job, so that plan
    ``i`` runs out where the factor exceeds a limit of its own, with probability
    ``p_i``. A plan that fitted and one that ran out bound the factor from both sides::

        P(i | runs) = (p_i - p_fitted) / (p_short - p_fitted),   between 0 and 1

    with the largest risk of a plan that fitted, 0 without one, and the least of a plan
    that ran out, 1 without one. Where runs contradict one common factor, a plan runs
    out if it is as likely to as one that did.

    Args:
        risks: Probability of each plan before any run, shape (plans,). [1]
        fitted: Indices of plans that fitted. [1]
        short: Indices of plans that ran out of memory. [1]

    Returns:
        Probabilities, shape (plans,). [1]

    Leaves out errors that a layout has of its own.
    """
    low = max((risks[at] for at in fitted), default=0.0)
    high = min((risks[at] for at in short), default=1.0)
    if low >= high:
        return tuple(float(risk >= high) for risk in risks)
    return tuple(min(max((risk - low) / (high - low), 0.0), 1.0) for risk in risks)

"""The Pareto front of time against cost."""

from collections.abc import Iterator, Sequence

from planner.planning.comparison.answer import CandidateAnswer, FrontPoint


def front(candidates: Sequence[CandidateAnswer]) -> tuple[FrontPoint, ...]:
    """Planned counts of all candidates that no other beats in time and in cost.

    A count whose search ended too early is not among them: its plan may be poor.
    """
    every = sorted(_points(candidates), key=lambda p: (p.time_s, p.cost_usd))
    kept: list[FrontPoint] = []
    for point in every:
        if not kept or point.cost_usd < kept[-1].cost_usd:
            kept.append(point)
    return tuple(kept)


def _points(candidates: Sequence[CandidateAnswer]) -> Iterator[FrontPoint]:
    for candidate in candidates:
        for point in candidate.points:
            if not point.settled:
                continue
            if point.time_s is not None and point.cost_usd is not None:
                yield FrontPoint(
                    name=candidate.name,
                    nodes=point.nodes,
                    gpus=point.gpus,
                    time_s=point.time_s,
                    cost_usd=point.cost_usd,
                )


def marked(candidates: Sequence[CandidateAnswer]) -> list[CandidateAnswer]:
    """Candidates that say whether another is both faster and cheaper.

    Only the chosen count of each candidate is compared. A candidate without a price,
    or without a plan that answers the question, is on no front.
    """
    able = [c for c in candidates if _pair(c) is not None and is_able(c)]
    return [
        candidate.model_copy(
            update={
                "pareto": candidate in able
                and not any(_beats(other, candidate) for other in able)
            }
        )
        for candidate in candidates
    ]


def is_able(candidate: CandidateAnswer) -> bool:
    """Tell if a candidate has a plan that answers the question.

    Returns:
        False without a plan, past the deadline, where the budget pays for no count,
        or where a verdict is not settled.
    """
    held = candidate.meets_deadline is not False and candidate.status not in (
        "over-budget",
        "too-late",
    )
    return candidate.plan is not None and held and candidate.settled


def _pair(candidate: CandidateAnswer) -> tuple[float, float] | None:
    if candidate.time_to_train_s is None or candidate.cost_usd is None:
        return None
    return candidate.time_to_train_s, candidate.cost_usd


def _beats(one: CandidateAnswer, other: CandidateAnswer) -> bool:
    """True where the first is at least as fast and as cheap, and better in either."""
    a, b = _pair(one), _pair(other)
    assert a is not None
    assert b is not None
    return a != b and a[0] <= b[0] and a[1] <= b[1]

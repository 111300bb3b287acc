"""The split of a given layout is the best, or its bound says how far it may be off."""

from dataclasses import replace

from every_split import cheapest_split
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import inner_problems, small_problem

from planner.planning.prediction.best_split import best_splits
from planner.search.bounds.paths import even_counts, in_class
from planner.search.stop import Stop
from planner.specs.table import StageCosts


def best_step(costs: StageCosts) -> float:
    """Step of the best of all splits; inf where none fits. [ns]."""
    best = cheapest_split(costs)
    return float("inf") if best is None else best[0] * costs.slowdown


@settings(max_examples=examples(60))
@given(
    st.lists(inner_problems(), min_size=1, max_size=3), st.sampled_from([0, 0.01, 8])
)
def test_no_split_is_faster_than_the_bound_and_the_best_meets_it(
    drawn: list[StageCosts], work: float
) -> None:
    """Whatever the work; with enough of it the fastest of all problems is proven."""
    problems = [replace(costs, block=0) for costs in drawn]
    assume(all(in_class(costs, even_counts(costs)) for costs in problems))
    answer = best_splits(problems, Stop(), work)
    steps = [
        float("inf") if split is None else split.value * costs.slowdown
        for costs, split in zip(problems, answer.found, strict=True)
    ]
    best = min(map(best_step, problems))
    assert answer.bound <= best <= min(steps)
    if work == 8:
        assert answer.bound == best == min(steps)


def test_no_work_leaves_the_even_split_with_a_true_bound() -> None:
    costs = small_problem(pp=4, runs=((0, 6),))
    (split,), bound = (answer := best_splits([costs], Stop(), 0)).found, answer.bound
    assert split is not None
    assert split.counts.tolist() == even_counts(costs).tolist()
    assert 0 < bound <= best_step(costs)

"""What is computed for all at once equals the same, one by one."""

from dataclasses import replace

import numpy as np
import pytest
from every_split import cheapest_split
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from one_row import one_row_table
from strategies import framework, inner_problems, jobs, small_problem
from tiny_models import FAMILIES

from planner.cost.meshes import _keys
from planner.cost.pipeline.linear import path_linear, path_lines
from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.schedules.simulator import Path
from planner.search.bounds import bounds
from planner.search.bounds.bounds import Relaxation, relax
from planner.search.bounds.columns import columns_of
from planner.search.bounds.paths import ShapePaths
from planner.search.space.space import Space, enumerate_space
from planner.specs.table import StageCosts


def fits_over_all_ranks(table: object, space: Space) -> list[bool]:
    """The sum over every rank of every candidate, none left out."""
    c = columns_of(table, space)  # type: ignore[arg-type]
    held = [np.zeros(len(space)) for _ in c.kinds]
    for rank in range(int(c.p.max(initial=1))):
        at = np.flatnonzero(c.p > rank)
        for total, (_, static, saved) in zip(held, c.kinds, strict=True):
            total[at] += bounds.most_on_rank(c, at, rank, static, saved)
    pairs = zip(held, c.kinds, strict=True)
    verdicts = [total >= layers for total, (layers, _, _) in pairs]
    return np.logical_and.reduce(verdicts).tolist()


def verdicts(table: object, space: Space) -> list[bool]:
    return (bounds.space_bounds(table, space).fits > 0).tolist()  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize("family", FAMILIES)
def test_a_verdict_on_memory_reached_early_is_that_of_all_ranks(family: str) -> None:
    @settings(max_examples=examples(25))
    @given(jobs(framework("megatron"), family), st.floats(0.0, 1.2))
    def same(pricing: Pricing, share: float) -> None:
        space = enumerate_space(pricing)
        table = fill_table(pricing, space.meshes, space.recompute)
        peak = (table.saved.max(axis=(0, 1)) + table.units[0].static) * 4
        table = replace(table, budget=(peak * share).astype(np.int64))
        assert verdicts(table, space) == fits_over_all_ranks(table, space)

    same()


@settings(max_examples=examples(300))
@given(inner_problems())
def test_early_verdicts_of_one_candidate(costs: StageCosts) -> None:
    table, space = one_row_table(costs)
    assert verdicts(table, space) == fits_over_all_ranks(table, space)


@given(inner_problems())
def test_the_line_of_a_sum_of_paths_is_the_sum_of_their_lines(
    costs: StageCosts,
) -> None:
    paths = ShapePaths().of(costs)
    lines = path_lines(costs, paths.counts, paths.p2p).each()
    sums = paths.sums()
    totals = path_lines(costs, sums.counts, sums.p2p).each()
    for family, total in enumerate(totals):
        own = lines[family * costs.pp : (family + 1) * costs.pp]
        assert total.constant == sum(line.constant for line in own)
        assert np.array_equal(total.factors, sum(line.factors for line in own))


@given(inner_problems(), st.floats(0.0, 2.0))
def test_stopping_at_the_paths_without_a_graph_claims_no_more(
    costs: StageCosts, share: float
) -> None:
    """A bound reached early lies above the mark, and below the best split."""
    whole, best = relax(costs), cheapest_split(costs)
    mark = int(whole.bound * share)
    early = relax(costs, None, hopeless=mark)
    assert early.bound <= whole.bound
    if not early.cuts:
        assert early.bound > mark
    if best is not None:
        assert early.bound <= best[0]


def test_a_hopeless_candidate_builds_no_graph() -> None:
    paths = ShapePaths()
    assert relax(small_problem(), None, paths, hopeless=0).cuts == ()
    assert paths.known == {}
    found = relax(small_problem(), None, paths, hopeless=None)
    assert isinstance(found, Relaxation)
    assert found.cuts
    assert len(paths.known) == 1


@given(
    arrays(
        np.int64,
        array_shapes(min_dims=2, max_dims=2, max_side=8),
        elements=st.sampled_from([0, 1, 2, 1 << 20, (1 << 40) + 1]),
    )
)
def test_rows_have_the_same_key_only_where_they_are_equal(levels: np.ndarray) -> None:
    """Also where the product of the widths leaves 64 bits."""
    keys = _keys(levels)
    for one, key in zip(levels.tolist(), keys.tolist(), strict=True):
        for other, its in zip(levels.tolist(), keys.tolist(), strict=True):
            assert (one == other) == (key == its)


def test_one_path_alone_has_the_line_it_has_among_others() -> None:
    costs = small_problem()
    paths = ShapePaths().of(costs)
    lines = path_lines(costs, paths.counts, paths.p2p).each()
    for counts, p2p, line in zip(paths.counts, paths.p2p, lines, strict=True):
        alone = path_linear(costs, Path(counts, int(p2p)))
        assert alone.constant == line.constant
        assert np.array_equal(alone.factors, line.factors)

"""The joint fit recovers known constants, and says nothing of what it never saw."""

import numpy as np
import pytest

from benchmarks.accuracy.crossval import folds, left_out, residuals
from benchmarks.accuracy.intervals import intervals_of, nested, quantiles
from planner.evidence.fitting.fit_columns import Observed, Tags, weights
from planner.evidence.fitting.hierarchy import fit_all
from planner.specs.frameworks.deviation import CONSTANTS

CLOCK = CONSTANTS.index("clock")


def observed(
    *stacks: tuple[str, str, float], rows: int = 40, noise: float = 0.0
) -> Observed:
    """Rows whose log time falls with the clock: source, stack, true log deviation."""
    random = np.random.default_rng(1)
    tags, ratios = [], []
    for source, stack, slower in stacks:
        for row in range(rows):
            group = f"{source}-{row // 4}"
            tags.append(Tags(f"{source}{row}", source, group, "hopper", stack))
            ratios.append(slower + noise * random.standard_normal())
    jacobian = np.zeros((len(tags), len(CONSTANTS)))
    jacobian[:, CLOCK] = -1.0
    return Observed(tuple(tags), np.array(ratios), jacobian)


def test_one_shared_slowness_is_found() -> None:
    data = observed(("a", "x", 0.06), ("b", "y", 0.06), ("c", "z", 0.06), rows=200)
    assert np.abs(fit_all(data).left(data)).max() < 0.005


def test_a_stack_of_its_own_slowness_moves_alone() -> None:
    data = observed(("a", "x", 0.0), ("b", "y", 0.0), ("c", "z", 0.1), rows=200)
    fit = fit_all(data)
    assert fit.deviation("stack", "z").clock == pytest.approx(0.92, abs=0.02)
    assert fit.deviation("stack", "x").clock > 0.99


def test_an_unseen_stack_takes_what_its_parents_have() -> None:
    data = observed(("a", "x", 0.08), ("b", "y", 0.08), ("c", "z", 0.08), rows=200)
    fit = fit_all(data)
    other = observed(("d", "new", 0.08))
    assert np.abs(fit.left(other)).max() < 0.06
    assert fit.deviation("stack", "new").moved() == {}


def test_without_rows_nothing_moves() -> None:
    none = observed()
    assert fit_all(none).deviation("everything").moved() == {}


def test_one_wild_row_hardly_matters() -> None:
    data = observed(("a", "x", 0.0), rows=40)
    data.log_ratio[0] = 3.0
    assert np.abs(fit_all(data).predicted(data)).max() < 0.02


def test_a_left_out_source_never_helps_itself() -> None:
    data = observed(("a", "x", 0.0), ("b", "y", 0.0), ("c", "z", 0.3), rows=100)
    left = left_out(data, "source")
    alone = fit_all(data.take(~data.where("source", "c")))
    its = data.where("source", "c")
    assert left[its] == pytest.approx(alone.left(data.take(its)))
    assert np.abs(residuals(data).in_sample[its]).mean() < np.abs(left[its]).mean()


def test_a_group_stays_on_one_side_across_sources() -> None:
    tags = (Tags("1", "a", "g", "x", "s"), Tags("2", "b", "g", "x", "s"))
    data = Observed(tags, np.zeros(2), np.zeros((2, 6)))
    for out, others in folds(data, "source"):
        assert out.sum() == 1
        assert others.sum() == 0


def test_clones_count_as_their_root() -> None:
    tags = [Tags(str(row), "a", "one", "x", "s") for row in range(9)]
    tags.append(Tags("9", "b", "two", "x", "s"))
    weight = weights(tags)
    assert weight[:9].sum() / weight[9] == pytest.approx(np.sqrt(np.sqrt(9)))


def test_quantiles_of_even_weights_are_the_usual_ones() -> None:
    values = np.linspace(0, 1, 1001)
    low, high = quantiles(values, np.ones(1001), (0.05, 0.95))
    assert low == pytest.approx(0.05, abs=1e-3)
    assert high == pytest.approx(0.95, abs=1e-3)


def test_the_band_of_a_group_is_its_own_and_holds_the_prediction() -> None:
    tags = [Tags(str(n), f"s{n % 5}", str(n), "hopper", "x") for n in range(200)]
    left = np.random.default_rng(2).normal(0.3, 0.05, 200)
    band = intervals_of(tags, left).groups["x, dense"]
    assert band.low == 1.0
    assert np.log(band.high) == pytest.approx(0.3 + 1.645 * 0.05, abs=0.03)


def test_nested_intervals_cover_what_they_never_saw() -> None:
    random = np.random.default_rng(3)
    names = [(f"s{n}", f"x{n % 3}", random.normal(0, 0.05)) for n in range(12)]
    data = observed(*names, rows=20, noise=0.05)
    held = nested(data)
    assert 0.8 <= held.inside.mean() <= 1.0
    assert (held.low <= 0).all()
    assert (held.high >= 0).all()

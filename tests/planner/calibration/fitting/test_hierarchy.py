"""The joint fit recovers known constants, and says nothing of what it never saw."""

import numpy as np
import pytest

from benchmarks.accuracy.crossval import folds, left_out, residuals
from planner.calibration.fitting.fit_columns import Observed, Tags, weights
from planner.calibration.fitting.hierarchy import fit_all
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

"""Tiny jobs against brute force over node counts, and every rule of the answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from purchases import JOB, up_to, written

from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.planning.comparison.answer import Comparison, Effort
from planner.planning.comparison.candidates.known import Counts
from planner.planning.comparison.candidates.plan_cache import Planned
from planner.planning.comparison.choice.choice import choose
from planner.planning.comparison.flow import compare
from planner.planning.comparison.read import Asking, Sweep, given_by, sweep_of
from planner.planning.comparison.store import Store

EFFORT = Effort(tolerance=0.0)
HOUR = 3600.0
MOST = 16


def slow(*values: float) -> list[Any]:
    """Values that the long tests take."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def in_turn(work: Any, tasks: Any) -> Iterator[tuple[int, Any]]:
    yield from ((at, work(task)) for at, task in enumerate(tasks))


def not_at_all(_work: Any, _tasks: Any) -> Iterator[tuple[int, Any]]:
    raise AssertionError("everything is on disk")
    yield 0, None


def swept(file: Path, **limits: float) -> Sweep:
    asking = Asking(
        effort=EFFORT,
        budget_usd=limits.get("budget_usd"),
        deadline_s=limits.get("deadline_s"),
        catalog=SHIPPED,
    )
    return sweep_of([given_by(file)], asking)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, Planned]]:
    """Every sensible count of each candidate, planned and proven."""
    file = written(tmp_path_factory.mktemp("all"), candidates=up_to(MOST))
    found = {}
    for task in swept(file, deadline_s=HOUR).tasks:
        counts = Counts(task)
        found[task.name] = {nodes: counts.at(nodes) for nodes in task.counts}
    return found


def chosen(file: Path, name: str, seen: dict[int, Planned], **limits: float) -> int:
    """What the bracket chooses, fed with the plans of brute force."""
    (task,) = (task for task in swept(file, **limits).tasks if task.name == name)
    counts = Counts(task)
    counts.seen = _Known(seen)
    choice = choose(counts)
    assert choice.planned is not None
    return 0 if choice.status else choice.planned.nodes


class _Known(dict[int, Planned]):
    """Plans that are there already, but are seen only once they are asked for."""

    def __init__(self, known: dict[int, Planned]) -> None:
        super().__init__()
        self.known = known

    def __contains__(self, nodes: object) -> bool:
        if nodes in self.known:
            self[nodes] = self.known[nodes]  # type: ignore[index]
        return super().__contains__(nodes)


@pytest.mark.parametrize("share", [*slow(0.3, 0.5, 0.8, 1.0, 2.5, 9.0), 1.3])
def test_the_smallest_cluster_is_that_of_brute_force(
    known: dict[str, dict[int, Planned]], tmp_path: Path, share: float
) -> None:
    """No smaller count of all sensible ones meets the deadline."""
    file = written(tmp_path, candidates=up_to(MOST))
    for name, plans in known.items():
        deadline = share * (plans[4].time_s or 0.0)
        able = [n for n, p in plans.items() if (p.time_s or 1e99) <= deadline]
        found = chosen(file, name, plans, deadline_s=deadline)
        assert found == min(able, default=0)


@pytest.mark.parametrize("share", [*slow(1.0, 1.05, 1.5, 2.5), 0.9, 1.2])
def test_the_budget_buys_what_brute_force_finds(
    known: dict[str, dict[int, Planned]], tmp_path: Path, share: float
) -> None:
    """The fastest of all counts whose rent, or price, is within the budget."""
    file = written(tmp_path, candidates=up_to(MOST))
    for name, plans in known.items():
        budget = share * (plans[2].outlay_usd or 0.0)
        able = {n: p for n, p in plans.items() if (p.outlay_usd or 1e99) <= budget}
        fastest = min(able, key=lambda n: able[n].time_s or 0.0, default=0)
        assert chosen(file, name, plans, budget_usd=budget) == fastest


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two nodes of each, a budget that pays for both."""
    folder = tmp_path_factory.mktemp("two")
    fixed = [{**candidate, "nodes": 2} for candidate in up_to(MOST)]
    prices = {"nic": "0.1 USD/GPU-h"}
    file = written(folder, candidates=fixed, budget="10 MUSD", changes=prices)
    return compare(swept(file), in_turn, Store(folder / "kept"))


def test_every_figure_of_a_candidate_follows_from_its_run(answer: Comparison) -> None:
    for one in answer.candidates:
        assert one.run is not None
        assert one.run.cost_usd is not None
        assert (one.nodes, one.gpus, one.status) == (2, 16, "optimal")
        assert one.time_to_train_s == one.run.time_to_train_s.value
        assert one.cost_usd == one.run.cost_usd.total.value
        assert one.energy_mwh == one.run.energy_mwh.value
        assert one.tokens_per_usd == pytest.approx(2e10 / (one.cost_usd or 0.0))
        interval = one.run.time_to_train_s
        assert interval.low < interval.value < interval.high
        assert one.within_budget


def test_what_is_signed_for_is_the_rent_or_the_hardware(answer: Comparison) -> None:
    """The budget trains for so much longer on rented nodes; bought ones have no end."""
    rented, bought = answer.candidates
    assert rented.outlay_usd == rented.cost_usd
    assert rented.cost_usd == pytest.approx(
        2.5 * 16 * (rented.time_to_train_s or 0.0) / HOUR
    )
    assert rented.budget_tokens == pytest.approx(2e10 * 10e6 / (rented.cost_usd or 0.0))
    assert bought.outlay_usd == 640_000
    assert bought.budget_tokens is None


def test_the_front_has_what_no_other_beats(answer: Comparison) -> None:
    assert {one.name for one in answer.candidates if one.pareto} == {
        point.name for point in answer.front
    }
    times = [point.time_s for point in answer.front]
    costs = [point.cost_usd for point in answer.front]
    assert times == sorted(times)
    assert costs == sorted(costs, reverse=True)


def test_the_best_under_a_budget_is_the_fastest(answer: Comparison) -> None:
    fastest = min(answer.candidates, key=lambda one: one.time_to_train_s or 0.0)
    assert answer.best == fastest.name


def test_the_next_dollar_is_told_with_and_without_a_price(answer: Comparison) -> None:
    """More nodes at their price, NICs at the file's, memory at what it may cost."""
    found = {
        extra.change.split(",")[0].split(" of ")[0]: extra for extra in answer.extras
    }
    assert {"more GPUs", "NICs", "more HBM", "NVLink domain"} == found.keys()
    assert found["more GPUs"].extra_usd is not None
    assert found["more GPUs"].saved_s > 0
    assert found["NICs"].extra_usd is not None
    assert found["more HBM"].extra_usd is None
    assert found["NICs"].saved_s >= 0
    assert found["more HBM"].saved_s >= 0


def test_a_resumed_sweep_plans_nothing_again(tmp_path: Path) -> None:
    """Not one candidate, and the answer is the same but for its own time."""
    fixed = [{**candidate, "nodes": 1} for candidate in up_to(MOST)]
    sweep, store = swept(written(tmp_path, candidates=fixed)), Store(tmp_path / "kept")
    first = compare(sweep, in_turn, store)
    again = compare(sweep, not_at_all, store)
    assert again.model_copy(update={"seconds": first.seconds}) == first


def test_a_broken_file_is_planned_again(tmp_path: Path) -> None:
    fixed = [{**up_to(MOST)[0], "nodes": 1}]
    sweep, kept = swept(written(tmp_path, candidates=fixed)), tmp_path / "kept"
    first = compare(sweep, in_turn, Store(kept))
    for file in kept.iterdir():
        file.write_text("{")
    assert compare(sweep, in_turn, Store(kept)).candidates[0].plan == (
        first.candidates[0].plan
    )


def test_another_price_is_another_question(tmp_path: Path) -> None:
    (one,) = swept(written(tmp_path, candidates=[{**up_to(2)[0], "nodes": 1}])).tasks
    dearer = {**up_to(2)[0], "nodes": 1, "price": "3 USD/GPU-h"}
    (other,) = swept(written(tmp_path, candidates=[dearer])).tasks
    assert one.key != other.key


def test_a_deadline_that_nothing_meets_names_the_nearest(tmp_path: Path) -> None:
    file = written(tmp_path, candidates=up_to(2))
    with pytest.raises(BadInputError, match="no candidate meets it") as refused:
        compare(swept(file, deadline_s=60.0), in_turn, Store(None))
    assert "the nearest is" in str(refused.value)
    assert "on 2 nodes" in str(refused.value)


def test_a_budget_below_one_node_is_refused_before_any_plan(tmp_path: Path) -> None:
    file = written(tmp_path, candidates=up_to(2)[1:])
    with pytest.raises(BadInputError, match="no candidate has a node") as refused:
        compare(swept(file, budget_usd=1000.0), not_at_all, Store(None))
    assert "320 kUSD or more: one node of bought" in str(refused.value)


def test_a_run_without_tokens_is_that_of_a_trillion(tmp_path: Path) -> None:
    job = {**JOB, "training": {"seq_len": 2048, "global_batch": 768}}
    sweep = swept(written(tmp_path, job=job, candidates=[{**up_to(2)[0], "nodes": 1}]))
    assert sweep.question.tokens == 1e12
    assert "1 T tokens" in sweep.warnings[0]

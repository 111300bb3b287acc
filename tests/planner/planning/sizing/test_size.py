"""Sizes for a budget: from the law, at the rate of the nearest model's own plan."""

import json

import pytest
from each import each
from rich.console import Console
from typer.testing import CliRunner

import planner
from planner.cli import app
from planner.document.screen import screen_of
from planner.report.pages import page_html
from planner.report.size import ENDING, size_document

ON = "8xh100"
LINE = ("size", "--on", ON, "--days", "10", "--budget", "1e5", "--serve-tokens", "1T")


@pytest.fixture(scope="module")
def answer() -> planner.Size:
    return planner.size(ON, days=10, budget=1e5, serve_tokens=1e12)


@pytest.mark.slow
def test_the_command_says_the_same(answer: planner.Size) -> None:
    done = CliRunner().invoke(app, [*LINE, "--json", "-"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(answer.to_json())


def test_the_figures_hold_together(answer: planner.Size) -> None:
    flops, days = answer.flops, 10 * 86400
    assert answer.limit == "days"
    assert answer.days == pytest.approx(10)
    assert flops.forward + flops.backward == pytest.approx(flops.training)
    assert flops.training == pytest.approx(6 * answer.parameters * answer.tokens)
    assert flops.training == pytest.approx(answer.flops_per_s * days)
    assert flops.serving == pytest.approx(2 * answer.parameters * 1e12)
    assert answer.low.parameters < answer.parameters < answer.high.parameters
    assert answer.cost_usd is not None
    assert answer.cost_usd < 1e5


def test_the_rate_is_that_of_the_nearest_model_s_plan(answer: planner.Size) -> None:
    near = answer.nearest
    run, step = near.run, near.plan.estimate
    assert run.time_to_train_s.value == pytest.approx(10 * 86400)
    assert near.trained.tokens == run.tokens
    rate = 6 * near.trained.parameters * step.tokens_per_s * run.effective_share.value
    assert answer.flops_per_s == pytest.approx(rate)
    planned = planner.plan(
        {
            "model": near.name,
            "cluster": {"name": "x", "node": "dgx-h100", "nodes": 1},
            "training": {"seq_len": 8192, "global_batch": 512},
            "framework": step.stack["framework"],
        }
    )
    assert planned.plans[0].layout == near.plan.layout
    assert planned.plans[0].estimate.step_time_s == step.step_time_s


def test_size_and_model_agree(answer: planner.Size) -> None:
    """No other dense model that was planned is nearer to the size of its rate."""
    last = {one.model: one for one in answer.rounds}
    assert last[answer.nearest.name].parameters == answer.parameters
    ratio = answer.nearest.trained.parameters / answer.parameters
    assert 0.7 < ratio < 1.4


def test_what_is_served_makes_the_model_smaller(answer: planner.Size) -> None:
    alone, as_good = answer.alone, answer.as_good
    assert alone is not None
    assert as_good is not None
    assert answer.parameters < as_good.parameters < alone.parameters
    assert alone.tokens < answer.tokens < as_good.tokens
    assert as_good.loss == pytest.approx(alone.loss)
    assert as_good.days > 10
    total = [one.flops.training + one.flops.serving for one in (as_good, alone)]
    assert total[0] < total[1]
    assert len(answer.table()) == 3


def test_the_screen_and_the_page(answer: planner.Size) -> None:
    console = Console(width=100, record=True, file=None)
    with console.capture() as shown:
        document = size_document(answer, answer._flow.flow.result, "next")
        console.print(screen_of(document, ENDING))
    text = shown.get()
    assert len(text.splitlines()) <= 40
    for word in ("forward", "backward", "besiroglu-2024", answer.nearest.name, "MFU"):
        assert word in text
    assert "best to serve" in page_html(answer._page())
    assert answer.nearest.name in answer._repr_html_()


@pytest.mark.slow
def test_more_money_is_a_larger_model() -> None:
    sizes = [planner.size(ON, budget=budget) for budget in ("2 kUSD", 2e4, 2e5)]
    assert [one.limit for one in sizes] == ["budget"] * 3
    parameters = [one.parameters for one in sizes]
    assert parameters == sorted(parameters)
    losses = [one.loss for one in sizes]
    assert losses == sorted(losses, reverse=True)
    for one, budget in zip(sizes, (2e3, 2e4, 2e5), strict=True):
        assert one.cost_usd == pytest.approx(budget)
        cost = one.nearest.run.cost_usd
        assert cost is not None
        assert cost.total.value == pytest.approx(budget)


@pytest.mark.slow
def test_memory_holds_a_size_back() -> None:
    """Ten years on one card are worth more parameters than the card holds."""
    answer = planner.size("1x4090", days=3650)
    assert answer.held_by_memory
    assert answer.parameters == answer.nearest.trained.parameters
    assert answer.nearest.plan.estimate.memory.verdict != "oom"
    assert "limits alone would train" in answer.warnings[0]


def test_twice_the_days_is_about_twice_the_work_in_the_same_framework() -> None:
    """A model that one framework alone trains does not change the question's."""
    short, long = (planner.size("64xh100", days=days) for days in (10, 20))
    rooms = {one.nearest.plan.estimate.stack["framework"] for one in (short, long)}
    assert rooms == {"megatron"}
    assert long.flops.training / short.flops.training == pytest.approx(2, rel=0.1)


@each(
    ("words", "field"),
    [
        ((), "--days"),
        (("--days", "0"), "--days"),
        (("--days", "nan"), "--days"),
        (("--days", "1e9"), "--days"),
        (("--budget", "-5"), "--budget"),
        (("--budget", "inf"), "--budget"),
        (("--budget", "5 EUR"), "--budget"),
        (("--days", "1", "--serve-tokens", "0"), "--serve-tokens"),
        (("--days", "1", "--serve-tokens", "1e999"), "--serve-tokens"),
        (("--days", "1", "--serve-tokens", "many"), "--serve-tokens"),
        (("--days", "1", "--law", "kaplan"), "--law"),
        (("--days", "1", "--framework", "megatrn"), "framework"),
        (("--days", "1", "--set", "model=llama-3-8b"), "model"),
        (("--days", "1", "--set", "training.seq_len=-1"), "training.seq_len"),
    ],
)
def test_bad_input_is_named(words: tuple[str, ...], field: str) -> None:
    done = CliRunner().invoke(app, ["size", "--on", "1xa100", *words])
    assert done.exit_code == 2, done.output
    assert field in done.output
    assert "Traceback" not in done.output


def test_gpus_that_are_not_known_are_named() -> None:
    unknown = CliRunner().invoke(app, ["size", "--on", "8xh10", "--days", "1"])
    assert unknown.exit_code == 2
    assert "--on" in unknown.output


@pytest.mark.slow
@each(
    ("words", "told"),
    [
        (("--on", "1xa40", "--budget", "50"), "no price of a40 is known"),
        (("--on", "1xa100", "--budget", "0.01"), "less than one step"),
        (("--on", "1xa100", "--budget", "1e15"), "days at most"),
    ],
)
def test_a_budget_that_buys_nothing_known_is_refused(
    words: tuple[str, ...], told: str
) -> None:
    done = CliRunner().invoke(app, ["size", *words])
    assert done.exit_code == 2, done.output
    assert "--budget" in done.output
    assert told in " ".join(done.output.split())


@pytest.mark.slow
def test_a_price_of_one_s_own_counts() -> None:
    own = planner.size("1xa40", budget=50, set={"economics.price": "0.5 USD/GPU-h"})
    assert own.days == pytest.approx(100 / 24)


def test_no_time_is_no_plan() -> None:
    done = CliRunner().invoke(app, [*LINE, "--time-limit", "0"])
    assert done.exit_code == 4, done.output

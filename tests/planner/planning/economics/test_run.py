"""A whole run against what was published of one, and against arithmetic."""

from dataclasses import replace

import pytest

from planner.hardware.reading.files import SHIPPED
from planner.hardware.reliability import interruptions
from planner.planning.economics import Stretch, run_terms, whole_run
from planner.planning.economics.goodput import (
    effective_share,
    lost_fraction,
    young_daly_interval,
)
from planner.specs.answer.estimate import Interval
from planner.specs.answer.run import Run
from planner.specs.economics import EconomicsSpec

DAY, HOUR = 86_400, 3_600
CARRIED = ("time_to_train_s", "gpu_hours", "energy_mwh", "carbon_t", "interruptions")


def economics(**fields: object) -> EconomicsSpec:
    return EconomicsSpec.model_validate(fields)


def spread(interval: Interval) -> tuple[float, float]:
    return interval.low / interval.value, interval.high / interval.value


def test_the_54_day_window_of_llama_3(llama_405b: Stretch) -> None:
    """419 unexpected interruptions, more than 90 % of the time effective."""
    run = whole_run([llama_405b], run_terms(llama_405b.workload))
    window = 54 * DAY / run.time_to_train_s.value
    seen = interruptions(SHIPPED).named("llama3-405b")

    assert run.interruptions.value * window == pytest.approx(419, rel=0.01)
    assert run.effective_share.value > seen.effective_share_above
    assert run.effective_share.value == pytest.approx(0.916, abs=0.003)
    assert run.effective_share.low < 0.9 < run.effective_share.value


def test_rates_of_other_fleets_leave_the_window_within_its_neighbours(
    llama_405b: Stretch,
) -> None:
    """The default is no outlier: B200s fail less, RSC's A100s more."""
    hours = {o.name: o.gpu_hours / 24 for o in interruptions(SHIPPED).observations}
    assert hours["llama3-405b"] == pytest.approx(2111.5, abs=0.1)
    assert hours["meta-rsc-1"] < hours["llama3-405b"] < hours["lablup-b200-504"]
    worst = economics(failures=f"{hours['meta-rsc-1']} GPU-d")
    run = whole_run([llama_405b], run_terms(llama_405b.workload, worst))
    best = whole_run([llama_405b], run_terms(llama_405b.workload))
    assert run.effective_share.value == pytest.approx(best.effective_share.low)


@pytest.mark.parametrize("price", ["rent", "buy", "2.5 USD/GPU-h", "300 kUSD/node"])
def test_the_interval_of_the_step_is_carried_through(
    llama_405b: Stretch, price: str
) -> None:
    run = whole_run(
        [llama_405b], run_terms(llama_405b.workload, economics(price=price))
    )
    step = spread(llama_405b.estimate.step_time_s)
    assert run.cost_usd is not None
    for interval in (*(getattr(run, name) for name in CARRIED), run.cost_usd.total):
        assert spread(interval) == pytest.approx(step)


def test_time_is_tokens_over_rate_over_share(llama_405b: Stretch) -> None:
    run = whole_run([llama_405b], run_terms(llama_405b.workload))
    productive = 15.6e12 / llama_405b.estimate.tokens_per_s
    seconds = productive / run.effective_share.value
    assert run.time_to_train_s.value == pytest.approx(seconds)
    assert run.gpu_hours.value == pytest.approx(16_384 * seconds / HOUR)


def test_a_rental_costs_gpu_hours_times_the_rate(llama_405b: Stretch) -> None:
    terms = run_terms(llama_405b.workload, economics(price="2.5 USD/GPU-h"))
    run = whole_run([llama_405b], terms)
    assert run.cost_usd is not None
    assert run.cost_usd.total.value == pytest.approx(2.5 * run.gpu_hours.value)
    by_node = economics(price="20 USD/node-h")
    same = whole_run([llama_405b], run_terms(llama_405b.workload, by_node))
    assert same.cost_usd is not None
    assert same.cost_usd.total.value == pytest.approx(run.cost_usd.total.value)


def test_a_purchase_is_written_off_and_pays_for_power_and_room(
    llama_405b: Stretch,
) -> None:
    """2,048 nodes of 300 kUSD over 4 years, 10 kW each, PUE 1.2."""
    own = economics(
        price="300 kUSD/node",
        depreciation="4 y",
        electricity="0.1 USD/kWh",
        colocation="100 USD/kW-month",
        power="10 kW",
        pue=1.2,
        carbon="400 g/kWh",
    )
    run = whole_run([llama_405b], run_terms(llama_405b.workload, own))
    years = run.time_to_train_s.value / (365.25 * DAY)
    cost = run.cost_usd
    assert cost is not None
    assert cost.rental is None
    assert cost.capital is not None
    assert cost.electricity is not None
    assert cost.colocation is not None
    assert cost.capital.value == pytest.approx(2048 * 300e3 * years / 4)
    energy = 2048 * 10 * 1.2 * years * 8766 / 1000
    assert run.energy_mwh.value == pytest.approx(energy)
    assert cost.electricity.value == pytest.approx(energy * 100)
    rated = 1.82 * 8 * 0.7
    assert cost.colocation.value == pytest.approx(2048 * rated * 100 * years * 12)
    parts = (cost.capital, cost.electricity, cost.colocation)
    assert cost.total.value == pytest.approx(sum(part.value for part in parts))
    assert run.carbon_t.value == pytest.approx(energy * 0.4)


def test_asynchronous_checkpoints_cost_less_than_synchronous_ones(
    llama_405b: Stretch,
) -> None:
    def share(**checkpoint: str) -> float:
        terms = run_terms(llama_405b.workload, economics(checkpoint=checkpoint))
        return whole_run([llama_405b], terms).effective_share.value

    slow = "100 GB/s"
    behind = share(bandwidth=slow)
    assert behind > share(bandwidth=slow, writes="synchronous")
    assert behind < share()
    assert share(interval="1 h") < share()
    assert share(interval="10 s") < share()


def test_the_chosen_interval_is_the_best_near_it(llama_405b: Stretch) -> None:
    """Young's interval is of first order: no other is better by half a per mille."""
    run = whole_run([llama_405b], run_terms(llama_405b.workload))
    best = run.checkpoint.interval_s
    for factor in (0.8, 0.9, 1.1, 1.25):
        own = economics(checkpoint={"interval": f"{best * factor} s"})
        other = whole_run([llama_405b], run_terms(llama_405b.workload, own))
        assert other.effective_share.value < run.effective_share.value + 5e-4


def test_spare_nodes_shorten_the_wait_for_repairs_and_are_paid_for(
    llama_405b: Stretch,
) -> None:
    def run(spares: int) -> tuple[float, float]:
        own = economics(repair="24 h", spare_nodes=spares, price="2 USD/GPU-h")
        found = whole_run([llama_405b], run_terms(llama_405b.workload, own))
        return found.effective_share.value, found.nodes.paid

    shares = [run(spares)[0] for spares in (0, 4, 8, 32)]
    assert shares == sorted(shares)
    assert shares[0] < 0.05
    months = economics(repair="180 d", spare_nodes=1400)
    many = whole_run([llama_405b], run_terms(llama_405b.workload, months))
    assert many.effective_share.value > 0.9  # about 1,080 are away at a time
    free = whole_run([llama_405b], run_terms(llama_405b.workload))
    assert shares[-1] == pytest.approx(free.effective_share.value, rel=1e-6)
    assert run(32)[1] == 2048 + 32


def test_phases_add_up_and_pay_for_the_reshard(llama_405b: Stretch) -> None:
    terms = run_terms(llama_405b.workload)
    halves = [replace(llama_405b, tokens=7.8e12, phase=index) for index in (0, 1)]
    whole, parts = whole_run([llama_405b], terms), whole_run(halves, terms)
    moved = terms.restart.value + 2 * whole.checkpoint.write_s
    assert parts.reshard_s == pytest.approx(moved)
    seconds = whole.time_to_train_s.value + moved
    assert parts.time_to_train_s.value == pytest.approx(seconds)
    assert parts.interruptions.value == pytest.approx(whole.interruptions.value)


def test_a_gpu_without_a_price_has_time_and_energy_but_no_cost(
    llama_405b: Stretch,
) -> None:
    terms = run_terms(llama_405b.workload)
    free = {n: replace(node, price=None) for n, node in terms.nodes.items()}
    run = whole_run([llama_405b], replace(terms, nodes=free))
    assert run.cost_usd is None
    assert run.energy_mwh.value > 0


def test_young_and_daly_of_the_cost_model() -> None:
    """C = 60 s, M = 3 h: every 1,138 s, 10.5 % lost; the exact share is near."""
    interval = young_daly_interval(60, 3 * HOUR)
    assert interval == pytest.approx(1138, abs=1)
    lost = lost_fraction(60, 3 * HOUR, interval=interval)
    assert lost == pytest.approx(0.105, abs=5e-4)
    exact = effective_share(60, 3 * HOUR, interval=interval)
    assert exact == pytest.approx(1 - lost, abs=0.006)


@pytest.mark.parametrize("restart", [600.0, 1e4, 1e6])
def test_an_exact_share_stays_above_nothing(restart: float) -> None:
    assert 0 < effective_share(60, 3600, interval=600, restart=restart) < 1


def test_idle_nodes_are_given_back_by_a_rental_and_kept_by_a_purchase(
    llama_405b: Stretch,
) -> None:
    smaller = llama_405b.layout.model_copy(update={"dp": 64, "dp_shard": 64})
    half = replace(llama_405b, layout=smaller)

    def run(price: str) -> Run:
        return whole_run([half], run_terms(half.workload, economics(price=price)))

    rented, bought = run("2 USD/GPU-h"), run("300 kUSD/node")
    assert (rented.nodes.idle, rented.nodes.paid) == (1024, 1024)
    assert (bought.nodes.idle, bought.nodes.paid) == (1024, 2048)
    assert bought.gpu_hours.value == pytest.approx(2 * rented.gpu_hours.value)
    assert rented.energy_mwh.value < bought.energy_mwh.value
    assert bought.energy_mwh.value < 1.2 * rented.energy_mwh.value

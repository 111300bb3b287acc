"""Prices: every quote has date and source, and what several of them come to."""

from pathlib import Path

import pytest

from planner.hardware.overlay import laid_over
from planner.hardware.prices import gpu_prices, purchase, rental, running
from planner.hardware.reading.files import SHIPPED
from planner.hardware.reading.money import Price, parse_price
from planner.hardware.reliability import checkpoints, interruptions

QUOTED = [name for name in SHIPPED.names("prices") if name != "running"]


@pytest.mark.parametrize("name", QUOTED)
def test_prices_are_of_gpus_that_exist(name: str) -> None:
    assert name in SHIPPED.names("gpus")
    quotes = gpu_prices(name, SHIPPED)
    assert all(quote.price.is_rate for quote in quotes.rental)
    assert not any(quote.price.is_rate for quote in quotes.purchase)
    assert all(quote.price.amount > 0 for quote in (*quotes.rental, *quotes.purchase))


def test_a_rental_is_the_median_of_the_newest_year() -> None:
    quote = rental("h200-sxm-141gb", SHIPPED)
    assert quote is not None
    assert (quote.price, quote.quotes) == (Price(4.29, "USD/GPU-h"), 7)
    assert (quote.low, quote.high, quote.date[:4]) == (3.39, 10, "2026")


def test_older_quotes_join_where_the_newest_year_has_fewer_than_three() -> None:
    quote = rental("l4", SHIPPED)
    assert quote is not None
    assert quote.quotes == len(gpu_prices("l4", SHIPPED).rental) == 3
    assert {q.date[:4] for q in gpu_prices("l4", SHIPPED).rental} == {"2025", "2026"}


def test_a_purchase_has_its_part_of_server_and_fabric() -> None:
    server = purchase("h100-sxm5-80gb", gpus=1024, gpus_per_node=8, catalog=SHIPPED)
    assert server is not None
    assert server.price.amount == pytest.approx(41_217 + 4247.5)
    assert (server.quotes, server.low) == (3, 310_000 / 8 + 4247.5)
    card = purchase("a100-sxm4-80gb", gpus=8, gpus_per_node=8, catalog=SHIPPED)
    assert card is not None
    assert card.price.amount == pytest.approx(1.64 * 17_499)


def test_larger_clusters_pay_more_for_their_fabric() -> None:
    fabric = running(SHIPPED).network_per_gpu
    prices = [fabric.per_gpu(gpus) for gpus in (8, 512, 513, 16_384, 10**6)]
    assert prices == sorted(prices)


def test_a_gpu_without_quotes_has_no_price() -> None:
    assert rental("rubin-288gb", SHIPPED) is None
    assert purchase("rubin-288gb", gpus=8, gpus_per_node=8, catalog=SHIPPED) is None
    assert rental("running", SHIPPED) is None


def test_a_quote_laid_over_ours_replaces_it(tmp_path: Path) -> None:
    own = "name: gaudi2\nrental: [{price: 3 USD/GPU-h, date: '2026', source: offer}]"
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "gaudi2.yaml").write_text(own)
    quote = rental("gaudi2", laid_over(tmp_path))
    assert quote is not None
    assert quote.price.amount == 3
    assert rental("gaudi2", SHIPPED) is None


def test_counts_of_the_54_day_window_add_up() -> None:
    seen = interruptions(SHIPPED).named("llama3-405b")
    assert (seen.interruptions, seen.hardware, seen.planned) == (419, 324, 47)
    assert seen.gpu_hours == pytest.approx(50_700, rel=0.001)
    assert checkpoints(SHIPPED).restart.value == 600


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("2.5 USD/GPU-h", Price(2.5, "USD/GPU-h")),
        ("20 USD/node-h", Price(20.0, "USD/node-h")),
        ("310 kUSD/node", Price(310_000.0, "USD/node")),
        ("0 USD/node", Price(0.0, "USD/node")),
    ],
)
def test_a_price_reads_back_as_it_is_written(text: str, price: Price) -> None:
    assert parse_price(text) == price
    assert parse_price(str(price)) == price


@pytest.mark.parametrize("text", [2.5, "2.5", "2.5 USD", "", "free", None, "USD/GPU-h"])
def test_what_has_no_currency_or_basis_is_no_price(text: object) -> None:
    with pytest.raises(ValueError, match="USD/GPU-h"):
        parse_price(text)

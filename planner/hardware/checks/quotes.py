"""Age and spread of the quotes behind each price."""

from collections.abc import Iterator

from planner.hardware.checks.findings import Finding, Standing
from planner.hardware.prices import ENOUGH, Quote, gpu_prices, rental
from planner.hardware.reading.files import Catalog

FAR = 5.0
"""Factor between a quote and the median from which the quote is an outlier. [1]"""


def standings(catalog: Catalog) -> tuple[Standing, ...]:
    """Quotes behind the hourly price of every GPU."""
    names = catalog.names("gpus")
    every = [quote for name in names for quote in gpu_prices(name, catalog).rental]
    newest = max((quote.date for quote in every), default="")
    return tuple(_standing(rental(name, catalog), name, newest[:4]) for name in names)


def _standing(quote: Quote | None, name: str, year: str) -> Standing:
    """Standing of one GPU; old is what has no quote of the catalog's newest year."""
    if quote is None:
        return Standing(name, None, note="no quote")
    weak = []
    if quote.quotes < ENOUGH:
        weak.append(f"fewer than {ENOUGH} quotes")
    if quote.date[:4] < year:
        weak.append(f"none of {year}")
    return Standing(
        name,
        quote.price.amount,
        quote.low,
        quote.high,
        quote.quotes,
        quote.date,
        ", ".join(weak),
    )


def quote_findings(catalog: Catalog) -> Iterator[Finding]:
    """Prices with a quote far from the median."""
    for row in standings(catalog):
        if row.usd and not row.usd / FAR <= row.low <= row.high <= row.usd * FAR:
            words = (
                f"quotes from {row.low:g} to {row.high:g} around {row.usd:g} USD/GPU-h"
            )
            yield Finding("prices", row.name, "rental", words)

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


def _standing(found: Quote | None, name: str, year: str) -> Standing:
    """Standing of one GPU; old is what has no quote of the catalog's newest year."""
    if found is None:
        return Standing(name, None, note="no quote")
    weak = []
    if found.quotes < ENOUGH:
        weak.append(f"fewer than {ENOUGH} quotes")
    if found.date[:4] < year:
        weak.append(f"none of {year}")
    return Standing(
        name,
        found.price.amount,
        found.low,
        found.high,
        found.quotes,
        found.date,
        ", ".join(weak),
    )


def quote_findings(catalog: Catalog) -> Iterator[Finding]:
    """Prices with a quote far from the median."""
    for one in standings(catalog):
        if one.usd and not one.usd / FAR <= one.low <= one.high <= one.usd * FAR:
            words = (
                f"quotes from {one.low:g} to {one.high:g} around {one.usd:g} USD/GPU-h"
            )
            yield Finding("prices", one.name, "rental", words)

"""Age and spread of the quotes behind each price."""

from collections.abc import Iterator

from hardware.catalog import names
from hardware.checks.findings import Finding, Standing
from hardware.prices import ENOUGH, gpu_prices, rental

FAR = 5.0
"""Factor between a quote and the median from which the quote is an outlier. [1]"""


def standings() -> tuple[Standing, ...]:
    """Quotes behind the hourly price of every GPU.

    Returns:
        One for each GPU, by name. [-]
    """
    newest = max(
        (quote.date for name in names("gpus") for quote in gpu_prices(name).rental),
        default="",
    )
    return tuple(_standing(name, newest[:4]) for name in names("gpus"))


def _standing(name: str, year: str) -> Standing:
    """Standing of one GPU; old is what has no quote of the catalog's newest year."""
    found = rental(name)
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


def quote_findings() -> Iterator[Finding]:
    """Prices with a quote far from the median.

    Yields:
        One finding for each GPU.
    """
    for one in standings():
        if one.usd and not one.usd / FAR <= one.low <= one.high <= one.usd * FAR:
            words = (
                f"quotes from {one.low:g} to {one.high:g} around {one.usd:g} USD/GPU-h"
            )
            yield Finding("prices", one.name, "rental", words)

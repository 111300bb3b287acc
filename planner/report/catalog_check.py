"""Report of `planner catalog --check`: broken rules, and quotes behind prices."""

from collections.abc import Iterator
from dataclasses import asdict

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from planner.hardware.checks import Finding, Standing, findings, standings
from planner.hardware.reading.files import Catalog
from planner.report.tables import section, sentences

CheckData = dict[str, object]
"""Findings and prices as plain data, schema `planner/catalog-check@1`."""


def check_data(catalog: Catalog) -> CheckData:
    """Every broken rule of the catalog, and what each price rests on."""
    found = findings(catalog)
    return {
        "schema": "planner/catalog-check@1",
        "deviations": [asdict(one) for one in found if not one.reason],
        "explained": [asdict(one) for one in found if one.reason],
        "prices": [asdict(one) for one in standings(catalog)],
    }


def check_report(catalog: Catalog) -> tuple[RenderableType, bool]:
    """The check of the catalog as a report.

    Returns:
        The report, and True where every broken rule has a reason. [-]
    """
    found = findings(catalog)
    open_ = [_told(one) for one in found if not one.reason]
    explained = [f"{_told(one)}: {one.reason}" for one in found if one.reason]
    report = Group(
        section("Deviations", sentences(open_ or ["none without a reason"])),
        section("Deviations with a reason", sentences(explained)),
        section("Prices for an hour, USD/GPU-h", _prices(standings(catalog))),
        sentences(list(_without(standings(catalog)))),
    )
    return report, not open_


def _told(one: Finding) -> str:
    return f"{one.kind} {one.name}, {one.field}: {one.words}"


def _prices(every: tuple[Standing, ...]) -> Table:
    """Median, spread, number and age of the quotes of each GPU that has some."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("GPU")
    for title in ("median", "from", "to", "quotes"):
        table.add_column(title, justify="right")
    for title in ("newest", ""):
        table.add_column(title)
    for one in every:
        if one.usd is not None:
            rates = (f"{rate:.3g}" for rate in (one.usd, one.low, one.high))
            table.add_row(one.name, *rates, str(one.quotes), one.date, one.note)
    return table


def _without(every: tuple[Standing, ...]) -> Iterator[str]:
    """GPUs that nobody quotes."""
    if names := [one.name for one in every if one.usd is None]:
        yield f"no quote: {', '.join(names)}"

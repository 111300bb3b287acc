"""Report of `planner catalog --check`: broken rules, and quotes behind prices."""

from collections.abc import Iterator
from dataclasses import asdict

from planner.document.blocks import Document, Section, Table, listed, section
from planner.hardware.checks import Finding, Standing, findings, standings
from planner.hardware.reading.files import Catalog
from planner.specs.counted import counted

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


def check_document(catalog: Catalog) -> tuple[Document, bool]:
    """The check of the catalog as a document."""
    found, prices = findings(catalog), standings(catalog)
    unexplained = [_told(one) for one in found if not one.reason]
    explained = [f"{_told(one)}: {one.reason}" for one in found if one.reason]
    document = Document(
        title="planner catalog --check",
        eyebrow=f"{counted(len(found), 'deviation')}",
        answer=f"{counted(len(unexplained), 'deviation')} without a reason",
        lead="",
        sections=[
            *section("open", "Deviations", listed("", unexplained)),
            *section("explained", "Deviations with a reason", listed("", explained)),
            Section(
                "prices",
                "Prices for an hour, USD/GPU-h",
                [_prices(prices), *listed("", [*_without(prices)])],
            ),
        ],
    )
    return document, not unexplained


def _told(one: Finding) -> str:
    return f"{one.kind} {one.name}, {one.field}: {one.words}"


def _prices(every: tuple[Standing, ...]) -> Table:
    """Median, spread, number and age of the quotes of each GPU that has some."""
    rows = [
        (
            one.name,
            one.date,
            one.note,
            *(f"{rate:.3g}" for rate in (one.usd, one.low, one.high)),
            str(one.quotes),
        )
        for one in every
        if one.usd is not None
    ]
    columns = ("GPU", "newest", "", "median", "from", "to", "quotes")
    return Table(columns, rows, words=3)


def _without(every: tuple[Standing, ...]) -> Iterator[str]:
    """GPUs that nobody quotes."""
    if names := [one.name for one in every if one.usd is None]:
        yield f"no quote: {', '.join(names)}"

"""Intervals from errors at first contact: by hand, and of the shipped ledger."""

from math import exp, log

import numpy as np
import pytest

from benchmarks.accuracy.intervals import (
    PARENT_SOURCES,
    Held,
    bands,
    coverage,
    left_out,
    quantile,
    shipped,
)
from benchmarks.accuracy.ledger import Met, met_memories, met_times
from planner.frameworks.fitted import UNSEEN, intervals
from planner.specs.answer.uncertainty import Band


def met(source: str, *errors: float, stack: str = "x", room: str = "room") -> list[Met]:
    keys = (f"{room}, {stack}", room)
    return [Met(f"{source}{e}", source, stack, "hopper", keys, e) for e in errors]


def sources(number: int, between: float, within: float, **group: str) -> list[Met]:
    """Ten rows each of sources whose means and rows scatter, in logarithms."""
    random = np.random.default_rng(number)
    return [
        row
        for each in range(number)
        for row in met(
            f"{group}{each}",
            *(random.normal(0, between) + random.normal(0, within, 10)),
            **group,
        )
    ]


def test_a_band_holds_the_prediction_and_both_signs_alike() -> None:
    rows = met("a", 0.1, 0.1) + met("b", 0.1) + met("c", 0.1)
    known = bands(rows)
    half = log(known.everything.high)
    assert half == pytest.approx(0.1, abs=1e-3)
    assert log(known.everything.low) == pytest.approx(-half, abs=1e-3)
    assert (known.everything.rows, known.everything.sources) == (4, 3)
    assert known.architectures == ("hopper",)


def test_every_source_weighs_the_same_whatever_its_rows() -> None:
    few = met("a", 0.1) + met("b", 0.3)
    many = met("a", *(0.1,) * 50) + met("b", 0.3)
    assert bands(few).everything.high == pytest.approx(
        bands(many).everything.high, rel=0.05
    )


def test_a_group_is_drawn_to_its_parent_the_more_the_fewer_its_sources() -> None:
    """Errors 0.1 and 0.3: one source of PARENT_SOURCES + 1 parts is the stack's own."""
    rows = [
        *(row for n in range(10) for row in met(f"a{n}", 0.1, stack="calm")),
        *met("b", 0.3, stack="wild"),
    ]
    groups = bands(rows).groups
    half = {key: log(its.high) for key, its in groups.items()}
    parent = (10 * 0.1 + 0.3) / 11
    drawn = (0.3 + PARENT_SOURCES * half["room"] / half["room"] * parent) / (
        1 + PARENT_SOURCES
    )
    assert half["room, wild"] / half["room"] == pytest.approx(drawn / parent, rel=0.02)
    assert half["room, calm"] < half["room"] < half["room, wild"]


@pytest.mark.slow
def test_bands_hold_nine_tenths_of_sources_that_they_never_saw() -> None:
    rows = sources(30, 0.2, 0.1) + sources(12, 0.05, 0.05, room="calm")
    over_rows, over_sources = coverage(left_out(rows))
    assert 0.85 <= over_rows <= 0.96
    assert 0.85 <= over_sources <= 0.96


def test_a_left_out_source_has_no_part_in_its_band() -> None:
    rows = met("a", 0.1) + met("b", 0.2) + met("c", 1.0)
    (own,) = (one for one in left_out(rows) if one.row.source == "c")
    known = bands([row for row in rows if row.source != "c"])
    assert own.band == known.band(own.row.keys, "hopper")
    assert not own.inside
    alone = known.band(("other, y", "other"), "hopper")
    assert alone == known.everything.band.wider(UNSEEN)


def test_the_share_within_a_source_is_what_its_own_rows_differ_by() -> None:
    assert bands(met("a", 0.3, 0.3) + met("b", -0.2, -0.2)).within == 0.0
    assert bands(met("a", -0.1, 0.1) + met("b", -0.2, 0.2)).within == 1.0


def test_quantiles_of_even_weights_are_the_usual_ones() -> None:
    values = np.linspace(0, 1, 1001)
    assert quantile(values, np.ones(1001), 0.95) == pytest.approx(0.95, abs=1e-3)
    doubled = quantile(np.array([1.0, 2.0]), np.array([3.0, 1.0]), 0.375)
    assert doubled == pytest.approx(1.0)


def test_coverage_is_over_rows_and_over_sources() -> None:
    band = Band(low=0.9, high=1.1)
    held = [Held(row, band) for row in met("a", 0.0, 0.0, 0.0) + met("b", 1.0)]
    assert coverage(held) == (0.75, 0.5)
    assert held[0].half_width == pytest.approx(0.1)
    assert exp(1.0) > band.high


@pytest.mark.parametrize("rows", [met_times(), met_memories()], ids=["time", "memory"])
def test_the_ledger_s_bands_hold_sources_that_they_never_saw(rows: list[Met]) -> None:
    over_rows, over_sources = coverage(left_out(rows))
    assert 0.85 <= over_rows <= 0.95
    assert over_sources >= 0.85


def test_what_ships_is_made_of_the_ledger() -> None:
    undated = {"date": ""}
    assert intervals().model_copy(update=undated) == shipped().model_copy(
        update=undated
    )

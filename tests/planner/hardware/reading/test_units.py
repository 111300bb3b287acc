"""Quantities: text with a unit in, base SI float inside, exact text out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from planner.hardware.reading.quantities import (
    Bytes,
    BytesPerSecond,
    FlopPerSecond,
    Seconds,
    Watts,
)
from planner.hardware.reading.units import FACTORS, parse_quantity, quantity_text


class Sample(BaseModel):
    model_config = ConfigDict(frozen=True)

    memory: Bytes
    rate: BytesPerSecond
    compute: FlopPerSecond
    time: Seconds
    power: Watts | None = None


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("80 GB", "B", 80e9),
        ("79.65 GiB", "B", 79.65 * 2**30),
        ("81559 MiB", "B", 81559 * 2**20),
        ("1e3kB", "B", 1e6),
        ("400 Gb/s", "B/s", 50e9),
        ("450 GB/s", "B/s", 450e9),
        ("5 us", "s", 5e-6),
        ("60 d", "s", 60 * 86400),
        ("989 TFLOP/s", "FLOP/s", 989e12),
        ("700 W", "W", 700),
        ("10.2 kW", "W", 10200),
    ],
)
def test_text_becomes_the_base_unit(text: str, unit: str, value: float) -> None:
    assert parse_quantity(text, unit) == value


@pytest.mark.parametrize(
    "text",
    ["80", 80, 80.0, "-5 GB", "nan GB", "inf GB", "80 XB", "GB", "", None, True],
)
def test_what_is_no_quantity_is_refused_and_the_units_named(text: object) -> None:
    with pytest.raises(ValueError, match="units are B, kB, MB, GB, TB, KiB, MiB"):
        parse_quantity(text, "B")


def test_a_bare_number_is_answered_with_all_units() -> None:
    with pytest.raises(ValidationError) as error:
        Sample.model_validate({"memory": 80})
    assert (
        "80 is not a number and a unit; units are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
    ) in str(error.value)


def test_a_misspelt_unit_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"did you mean GiB\?"):
        parse_quantity("80 Gib", "B")


def test_an_amount_beyond_floats_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_quantity("1e400 B", "B")


@given(st.floats(0, 1e300), st.sampled_from(sorted(FACTORS)))
def test_base_text_reads_back_exactly(value: float, unit: str) -> None:
    assert parse_quantity(quantity_text(value, unit), unit) == value


@given(st.floats(0, 1e30), st.floats(1e-30, 1e30))
def test_a_model_survives_json_and_python_dumps_exactly(a: float, b: float) -> None:
    sample = Sample.model_validate(
        {"memory": f"{a!r} GiB", "rate": f"{b!r} Gb/s"}
        | {"compute": "1 PFLOP/s", "time": f"{a!r} us"},
    )
    assert Sample.model_validate_json(sample.model_dump_json()) == sample
    assert Sample.model_validate(sample.model_dump()) == sample


def test_the_json_schema_of_a_quantity_is_text_with_its_units() -> None:
    schema = Sample.model_json_schema()["properties"]["power"]["anyOf"][0]
    assert schema["type"] == "string"
    assert "W|kW|MW" in schema["pattern"]

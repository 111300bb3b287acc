"""Quantities with units as pydantic field types: text in, base SI floats inside.

`Bytes`, `BytesPerSecond`, `FlopPerSecond`, `Seconds` and `Watts` hold a float in the
base unit. They read text such as `"80 GB"`, `"400 Gb/s"` (bits) or `"5 us"`. A model
writes them back as text in the base unit, so that JSON round-trips exactly. Money is
in US dollars, always with the currency: `"100 MUSD"`, `"0.08 USD/kWh"`.
Prefixes: k, M, G, T, P are powers of 1000; Ki, Mi, Gi, Ti are powers of 1024.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from planner.hardware.reading.nearest import nearest

_BYTES = {
    "B": Decimal(1),
    "kB": Decimal(10**3),
    "MB": Decimal(10**6),
    "GB": Decimal(10**9),
    "TB": Decimal(10**12),
    "KiB": Decimal(2**10),
    "MiB": Decimal(2**20),
    "GiB": Decimal(2**30),
    "TiB": Decimal(2**40),
}
_BITS = {
    "b": Decimal("0.125"),
    "kb": Decimal(125),
    "Mb": Decimal(125_000),
    "Gb": Decimal(125_000_000),
    "Tb": Decimal(125_000_000_000),
}
_RATES = {f"{unit}/s": factor for unit, factor in (_BYTES | _BITS).items()}
_FLOPS = {
    "FLOP/s": Decimal(1),
    "GFLOP/s": Decimal(10**9),
    "TFLOP/s": Decimal(10**12),
    "PFLOP/s": Decimal(10**15),
}
_TIMES = {
    "s": Decimal(1),
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
    "y": Decimal(31_557_600),
}
_CLOCKS = {"Hz": Decimal(1), "MHz": Decimal(10**6)}
_POWERS = {"W": Decimal(1), "kW": Decimal(10**3), "MW": Decimal(10**6)}

_DOLLARS = {
    "USD": Decimal(1),
    "kUSD": Decimal(10**3),
    "MUSD": Decimal(10**6),
    "BUSD": Decimal(10**9),
}
_WORK = {
    "FLOP": Decimal(1),
    "PFLOP": Decimal(10**15),
    "EFLOP": Decimal(10**18),
    "ZFLOP": Decimal(10**21),
    "YFLOP": Decimal(10**24),
}


def _dollars(per: str) -> dict[str, Decimal]:
    """Dollars, thousands and millions of them, for one of something."""
    return {f"{unit}/{per}": _DOLLARS[unit] for unit in ("USD", "kUSD", "MUSD")}


FACTORS: Mapping[str, Mapping[str, Decimal]] = MappingProxyType(
    {
        "B": _BYTES,
        "B/s": _RATES,
        "FLOP/s": _FLOPS,
        "FLOP": _WORK,
        "s": _TIMES,
        "W": _POWERS,
        "Hz": _CLOCKS,
        "USD": _DOLLARS,
        "USD/GPU-h": {"USD/GPU-h": Decimal(1)},
        "USD/node-h": {"USD/node-h": Decimal(1)},
        "USD/GPU": _dollars("GPU"),
        "USD/node": _dollars("node"),
        "USD/kWh": {"USD/kWh": Decimal(1), "USD/MWh": Decimal("0.001")},
        "USD/kW-month": {"USD/kW-month": Decimal(1)},
        "kg/kWh": {"kg/kWh": Decimal(1), "g/kWh": Decimal("0.001")},
        "GPU-h": {"GPU-h": Decimal(1), "GPU-d": Decimal(24), "GPU-y": Decimal(8766)},
    },
)
"""Base unit -> allowed unit -> its factor to the base unit [1]."""

_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_WORD = r"[A-Za-z]+(?:-[a-z]+)?"
_UNIT = rf"{_WORD}(?:/{_WORD})?"
_TEXT = re.compile(rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>{_UNIT})\s*")


def parse_quantity(text: object, unit: str) -> float:
    """Text of a number and a unit becomes a float in the base unit.

    value = number * factor(unit), in decimal, rounded once.

    Args:
        text: For example `"79.65 GiB"`. [unit of text]
        unit: Base unit, a key of `FACTORS`. [-]

    Raises:
        ValueError: A bare number, a sign, an unknown unit, NaN or infinity.
    """
    factors = FACTORS[unit]
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if isinstance(text, str) and text.lstrip().startswith("-"):
        raise ValueError(f"{text} is negative; units are {', '.join(factors)}")
    if match is None:
        raise ValueError(
            f"{text} is not a number and a unit; units are {', '.join(factors)}",
        )
    if match["unit"] not in factors:
        raise ValueError(_unknown_unit(match["unit"], factors))
    value = float(Decimal(match["number"]) * factors[match["unit"]])
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large; give a finite number of {unit}")
    return value


def _unknown_unit(unit: str, factors: Mapping[str, Decimal]) -> str:
    """Message with the given unit, the nearest unit and the allowed units."""
    by_fold = {name.casefold(): name for name in reversed(list(factors))}
    near = nearest(unit.casefold(), by_fold)
    hint = f" (did you mean {by_fold[near]}?)" if near else ""
    return f"{unit} is no unit here{hint}; units are {', '.join(factors)}"


def quantity_text(value: float, unit: str) -> str:
    """A float in the base unit as text that `parse_quantity` reads back exactly.

    Args:
        value: The quantity. [unit]

    Returns:
        For example `"80000000000.0 B"`. [unit]
    """
    return f"{value!r} {unit}"


@dataclass(frozen=True)
class Quantity:
    """The pydantic type of a quantity: reads text, holds a float, writes text.

    Attributes:
        unit: Base unit, a key of `FACTORS`. [-]
    """

    unit: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read with `parse_quantity`, write with `quantity_text`."""
        del source, handler
        return core_schema.no_info_plain_validator_function(
            lambda text: parse_quantity(text, self.unit),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: quantity_text(value, self.unit),
                return_schema=core_schema.str_schema(),
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A string: number, optional space, one of the allowed units."""
        del schema, handler
        units = "|".join(FACTORS[self.unit])
        return {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*({units})\s*$"}

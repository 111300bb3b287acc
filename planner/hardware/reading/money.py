"""Prices of GPUs, for an hour or to own, always with currency and basis."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from planner.hardware.reading.units import FACTORS, parse_quantity

Basis = Literal["USD/GPU-h", "USD/node-h", "USD/GPU", "USD/node"]
"""Basis of a price: an hour of a GPU or node, or a GPU or node to own."""
BASES: tuple[Basis, ...] = ("USD/GPU-h", "USD/node-h", "USD/GPU", "USD/node")


@dataclass(frozen=True)
class Price:
    """A price with its basis.

    Attributes:
        amount: Above 0 for an hour; 0 for a GPU or node that is paid for. [basis]
        basis: Currency, and the GPU, node or hour that the price is for. [-]
    """

    amount: float
    basis: Basis

    @property
    def is_rate(self) -> bool:
        """True if the price is for an hour, not for owning."""
        return self.basis.endswith("-h")

    def per_gpu(self, gpus_per_node: int) -> float:
        """The price of one GPU.

        Returns:
            The price, for an hour where it is a rate. [USD/GPU-h] or [USD/GPU]
        """
        return self.amount / (gpus_per_node if "node" in self.basis else 1)

    def __str__(self) -> str:
        return f"{self.amount!r} {self.basis}"


def parse_price(text: object) -> Price:
    """Text of a number, a currency and a basis becomes a price.

    Raises:
        ValueError: No unit, no currency, another currency, a sign, or an hour for
            nothing; says which units there are.
    """
    if isinstance(text, Price):
        return text
    unit = text.split()[-1] if isinstance(text, str) and text.split() else ""
    for basis in BASES:
        if any(unit.endswith(known) for known in FACTORS[basis]):
            price = Price(parse_quantity(text, basis), basis)
            if price.is_rate and price.amount == 0:
                raise ValueError(f"{text} is no rate; an hour costs more than 0")
            return price
    raise ValueError(_no_price(text))


def _no_price(text: object) -> str:
    if isinstance(text, str) and text.lstrip().startswith("-"):
        return f"{text} is negative; give a price of {', '.join(BASES)}"
    return (
        f"{text} is no number with currency and basis; prices are in "
        f"{', '.join(BASES)}, for example 2.5 USD/GPU-h or 310 kUSD/node"
    )


_SCHEMA: dict[str, Any] = {"type": "string", "examples": ["2.5 USD/GPU-h"]}
PriceField = Annotated[
    Price, PlainValidator(parse_price), PlainSerializer(str), WithJsonSchema(_SCHEMA)
]
"""A price as a pydantic field: text in, `Price` inside, text out."""

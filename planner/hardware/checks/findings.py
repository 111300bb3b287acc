"""Findings of a check of the catalog, and standings of its prices."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A number that breaks a rule.

    Attributes:
        kind: `gpus`, `links` or `prices`. [-]
        name: Name of the entry. [-]
        field: Field, or pair of fields, that breaks the rule. [-]
        words: Rule and numbers. [text]
        reason: Reason by which the entry's file allows it; empty where none. [text]
    """

    kind: str
    name: str
    field: str
    words: str
    reason: str = ""


@dataclass(frozen=True)
class Standing:
    """Quotes that the price of a GPU rests on.

    Attributes:
        name: Name of the GPU. [-]
        usd: Median of the quotes for an hour; None without a quote. [USD/GPU-h]
        low: Least of the quotes. [USD/GPU-h]
        high: Greatest of the quotes. [USD/GPU-h]
        quotes: Number of quotes. [1]
        date: Date of the newest quote. [-]
        note: What is weak about it, if anything. [text]
    """

    name: str
    usd: float | None
    low: float = 0.0
    high: float = 0.0
    quotes: int = 0
    date: str = ""
    note: str = ""

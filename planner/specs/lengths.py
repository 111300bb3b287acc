"""Lengths of the texts of a data set, and how a batch of them is filled up."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, pairwise
from math import ceil, exp, log
from statistics import NormalDist
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from planner.hardware.reading.numbers import Float

Padding = Literal["longest", "max", "packed"]
"""Rows are as long as the longest text of their micro-batch, as the job's sequence
length, or full of several texts that attend to themselves alone. [text]"""

MOST_BARS = 10_000
"""Most lengths of a histogram. [1]"""
SUM_TOLERANCE = 0.005
"""Distance from 1 of shares that are written with two or three digits. [1]"""
LONGEST_OF = 100_000
"""Texts of a run whose longest counts as the longest of a distribution. [1]"""
STEPS = 512
"""Parts that a distribution is cut into, evenly in deviations. [1]"""
OUTERMOST = 4.5
"""Deviations from the median beyond which no part lies. [1]"""
TENTH = NormalDist().inv_cdf(0.9)
"""Deviations above which a tenth lies. [1]"""
FORMS = (
    "a list of {length, share}, shares by length, as {256: 0.7, 2048: 0.3}, "
    "{median, p90}, or {file} with a length in each line"
)


class LengthShare(BaseModel):
    """One bar of a histogram of lengths."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length: int = Field(gt=0, le=2**30, strict=True)
    """Tokens of a text. [token]"""
    share: Float = Field(gt=0, le=1, allow_inf_nan=False)
    """Share of the texts that have this length. [1]"""


class Lognormal(BaseModel):
    """Lengths whose logarithms are normal, as those of most instruction sets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    median: Float = Field(gt=0, le=2**30, allow_inf_nan=False)
    """Length that half of the texts exceed. [token]"""
    p90: Float = Field(gt=0, le=2**30, allow_inf_nan=False)
    """Length that a tenth of the texts exceeds. [token]"""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.p90 < self.median:
            raise ValueError(
                f"p90 {self.p90:g} is below median {self.median:g}; a tenth of the "
                "texts cannot be longer than fewer tokens than half of them exceed"
            )
        return self


class LengthsFile(BaseModel):
    """Lengths that a file lists: a number in each line, or JSON with its ``length``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str = Field(min_length=1)
    """Path, from the job's own folder on. [text]"""


NAMED = (set(Lognormal.model_fields), set(LengthsFile.model_fields))
"""Fields of the forms that are no lengths. [text]"""


def _by_length(value: object) -> object:
    """A mapping of lengths to shares as a list of bars; other forms as they are."""
    if not isinstance(value, dict) or any(set(value) <= form for form in NAMED):
        return value
    if not all(str(key).isdecimal() for key in value):
        unknown = next(key for key in value if not str(key).isdecimal())
        raise ValueError(f"{unknown} is no length; allowed: {FORMS}")
    return [{"length": int(key), "share": share} for key, share in value.items()]


def _whole(bars: tuple[LengthShare, ...]) -> tuple[LengthShare, ...]:
    """Refuse a histogram that does not add up."""
    total = sum(bar.share for bar in bars)
    if abs(total - 1) > SUM_TOLERANCE:
        raise ValueError(
            f"shares add up to {total:.4g}; allowed: shares that add up to 1"
        )
    return bars


def _form(value: object) -> str:
    """Member of the union that a value is; tags with a bracket name no field."""
    if isinstance(value, list | tuple):
        return "[shares]"
    listed = isinstance(value, LengthsFile) or (
        isinstance(value, dict) and "file" in value
    )
    return "[file]" if listed else "[lognormal]"


Histogram = Annotated[
    tuple[LengthShare, ...],
    Field(min_length=1, max_length=MOST_BARS),
    AfterValidator(_whole),
]
Written = tuple[LengthShare, ...] | Lognormal | LengthsFile | dict[int, float]
"""Forms in which lengths are written."""
Lengths = Annotated[
    Annotated[Histogram, Tag("[shares]")]
    | Annotated[Lognormal, Tag("[lognormal]")]
    | Annotated[LengthsFile, Tag("[file]")],
    Discriminator(_form),
    BeforeValidator(_by_length, json_schema_input_type=Written),
]
"""Lengths of a data set: a histogram, a distribution of two figures, or a file."""


def refuse_padding(
    document: int | None, lengths: object, padding: Padding | None
) -> None:
    """Refuse what fills rows twice, or with texts of unknown lengths.

    Args:
        document: Length of packed texts that are all alike. [token]
        lengths: Lengths of the texts; none: all have the sequence length. [-]
        padding: How rows are filled. [text]
    """
    if document and lengths:
        raise ValueError(
            "give lengths or document, not both: document is the length of packed "
            "texts that are all alike"
        )
    if document and padding not in (None, "packed"):
        raise ValueError(
            f"document is of packed texts, and padding is {padding}; allowed: packed"
        )


@dataclass(frozen=True)
class Draws:
    """Lengths in ascending order, each with the share of texts that have it."""

    lengths: tuple[float, ...]
    """Tokens of a text, cut at the job's sequence length. [token]"""
    shares: tuple[float, ...]
    """Shares of the texts; they add up to 1. [1]"""

    @cached_property
    def mean(self) -> float:
        """Mean length. [token]."""
        return self._moment(1)

    @cached_property
    def span(self) -> float:
        """Tokens that a token's text has, in the mean over tokens. [token]."""
        return self._moment(2) / self.mean

    @property
    def longest(self) -> int:
        """Length of the longest text. [token]."""
        return ceil(self.lengths[-1])

    def _moment(self, power: int) -> float:
        pairs = zip(self.lengths, self.shares, strict=True)
        return sum(share * length**power for length, share in pairs)

    def greatest(self, count: int) -> "Draws":
        """Longest of several texts that are drawn apart."""
        below = [0.0, *accumulate(self.shares)]
        below[-1] = 1.0
        powers = [share**count for share in below]
        return Draws(self.lengths, tuple(high - low for low, high in pairwise(powers)))


@cache
def even_draws(most: int) -> Draws:
    """List lengths that are spread evenly.

    Args:
        most: Greatest length. [token]
    """
    parts = min(most, MOST_BARS)
    return Draws(
        tuple(most * i / parts for i in range(1, parts + 1)), (1 / parts,) * parts
    )


@cache
def draws_of(lengths: Histogram | Lognormal | LengthsFile, most: int) -> Draws:
    """List the lengths of a data set.

    Args:
        lengths: Histogram or distribution; a file's lengths once they are read. [-]
        most: Length at which texts are cut. [token]
    """
    if isinstance(lengths, LengthsFile):
        raise TypeError(f"the lengths of {lengths.file} were not read")
    if isinstance(lengths, Lognormal):
        return _merged(_lognormal(lengths), most)
    total = sum(bar.share for bar in lengths)
    return _merged([(bar.length, bar.share / total) for bar in lengths], most)


def _lognormal(lengths: Lognormal) -> list[tuple[float, float]]:
    """Length and share of every part of a lognormal distribution."""
    normal, width = NormalDist(), 2 * OUTERMOST / STEPS
    middle, sigma = log(lengths.median), log(lengths.p90 / lengths.median) / TENTH
    edges = [-OUTERMOST + width * i for i in range(STEPS + 1)]
    whole = normal.cdf(edges[-1]) - normal.cdf(edges[0])
    most = normal.inv_cdf(1 - 1 / LONGEST_OF)
    return [
        (
            exp(middle + sigma * min((low + high) / 2, most)),
            (normal.cdf(high) - normal.cdf(low)) / whole,
        )
        for low, high in pairwise(edges)
    ]


def _merged(pairs: Sequence[tuple[float, float]], most: int) -> Draws:
    """Pairs in ascending order with each length once, cut at the longest."""
    found: dict[float, float] = {}
    for length, share in sorted(pairs):
        at = min(max(round(length, 6), 1.0), float(most))
        found[at] = found.get(at, 0.0) + share
    if len(found) == 1:
        return Draws(tuple(found), (1.0,))
    return Draws(tuple(found), tuple(found.values()))

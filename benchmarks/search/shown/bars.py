"""Bars that the search must meet on two cores, beside the measurements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.search.process import Row
from benchmarks.search.series import gap_at

MINUTE = 60.0
"""Time after which a gap is looked at. [s]"""
MOST_MEMORY = 2e9
"""Peak memory of any case. [B]"""
HUNDRED_THOUSAND = ("dense-2t-100k-gb200", "moe-2t-100k-gb200")
LLAMA = "llama-3.1-405b-16k-h100"
Figure = Callable[[Row], float | None]


@dataclass(frozen=True)
class Bar:
    """One figure of one case, and the most that it may be."""

    job: str
    space: str
    what: str
    figure: Figure
    most: float
    text: Callable[[float], str]

    def cells(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """The bar beside the measurement.

        Args:
            rows: Measurements of cases.

        Returns:
            Job, space, figure, bar, measurement, and yes where it was met. [text]
        """
        named = (self.job, self.space, self.what, f"at most {self.text(self.most)}")
        mine = [r for r in rows if (r["job"], r["space"]) == (self.job, self.space)]
        if not mine:
            return (*named, "not measured", "")
        value = self.figure(mine[0])
        if value is None:
            return (*named, "none", "no")
        return (*named, self.text(value), "yes" if value <= self.most else "no")


def _at_a_minute(row: Row) -> float | None:
    return gap_at(row.get("series", ()), MINUTE)


def _field(name: str) -> Figure:
    return lambda row: row.get(name)


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


def _share(value: float) -> str:
    return f"{value:.2%}"


def _first(job: str, space: str) -> Bar:
    return Bar(job, space, "first plan", _field("first_plan_s"), 10.0, _seconds)


def _gap(job: str, space: str, most: float) -> Bar:
    return Bar(job, space, "gap after 60 s", _at_a_minute, most, _share)


BARS = (
    Bar(LLAMA, "default", "proof", _field("proof_s"), 10.0, _seconds),
    _gap(LLAMA, "full", 0.005),
    *(_first(job, "default") for job in HUNDRED_THOUSAND),
    *(_gap(job, "default", 0.01) for job in HUNDRED_THOUSAND),
    *(_first(job, "full") for job in HUNDRED_THOUSAND),
    *(_gap(job, "full", 0.01) for job in HUNDRED_THOUSAND),
)
"""Bars on single cases, as they stand on the page."""


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Every bar beside the measurement, the bar on memory last.

    Args:
        rows: Measurements of cases.

    Returns:
        Cells of a table. [text]
    """
    return [*(bar.cells(rows) for bar in BARS), *_memory(rows)]


def _memory(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    if not rows:
        return []
    most = max(rows, key=lambda row: row["peak_mib"])
    used = most["peak_mib"] * 2**20
    met = "yes" if used < MOST_MEMORY else "no"
    asked, got = f"under {MOST_MEMORY / 1e9:.0f} GB", f"{used / 1e9:.2f} GB"
    return [(most["job"], most["space"], "peak memory, most of all", asked, got, met)]

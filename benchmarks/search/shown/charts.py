"""The curves of the page, as SVG files beside it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.search.growth import AXES
from benchmarks.search.process import Row
from benchmarks.search.series import Point, gap_of

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter
except ModuleNotFoundError as error:
    raise SystemExit("charts need matplotlib: pip install -e '.[bench]'") from error

HERE = Path(__file__).parents[1]
FLOOR = 1e-4
"""Gap at the foot of a chart; a proven plan lies on it. [1]"""
SPAN = 75.0
"""Time that a chart of gaps shows. [s]"""
SECONDS, SIZES = (0.1, 1000.0), (10.0, 10_000.0)
"""Ranges of charts of growth: times [s]; memory [MiB] and 1,000 candidates."""
LOOK: dict[Any, Any] = {
    "svg.hashsalt": "planner",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Settings by which text stays text and equal figures give equal files."""
COLOURS = {"default": "C0", "full": "C1", "Calculon's axes": "C2"}


def write_charts(cases: Sequence[Row], growth: Sequence[Row]) -> None:
    """Draw the measurements.

    Args:
        cases: Rows with a series.
        growth: Points of growth.
    """
    curves = [row for row in cases if row.get("series")]
    if curves:
        with _figure("gap.svg", len({row["job"] for row in curves})) as panels:
            _gaps(panels, curves)
    along = [name for name in AXES if any(row["along"] == name for row in growth)]
    if along:
        with _figure("growth.svg", 2 * len(along)) as panels:
            _growth(panels, growth, along)


@contextmanager
def _figure(name: str, panels: int) -> Iterator[list[Axes]]:
    """Panels in two columns, written to a file at the end."""
    rows = -(-panels // 2)
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(9.0, 2.4 * rows), layout="constrained")
        grid = figure.subplots(rows, 2, squeeze=False)
        flat = [axes for row in grid for axes in row]
        for axes in flat[panels:]:
            axes.remove()
        yield flat[:panels]
        figure.savefig(HERE / name, metadata={"Date": None})


def _gaps(panels: list[Axes], rows: Sequence[Row]) -> None:
    """One panel a job, one curve a space."""
    jobs = list(dict.fromkeys(row["job"] for row in rows))
    for axes, job in zip(panels, jobs, strict=True):
        for row in rows:
            if row["job"] == job:
                _curve(axes, row["series"], row["space"])
        axes.set(title=job, yscale="log", xlim=(0, SPAN), ylim=(100 * FLOOR, 120))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g} %"))
        axes.set_xlabel("seconds since the process began")
        axes.set_ylabel("gap")
        axes.legend(loc="upper right", frameon=False)


def _curve(axes: Axes, series: Sequence[Point], space: str) -> None:
    """The gap from the first plan on, with a dot where it is closed."""
    known = [(point[0], gap_of(point)) for point in series]
    times = [time for time, gap in known if gap is not None]
    gaps = [100 * max(gap, FLOOR) for _, gap in known if gap is not None]
    colour = COLOURS[space]
    axes.step(times, gaps, where="post", color=colour, label=space)
    proven = next((time for time, gap in known if gap == 0.0), None)
    if proven is not None:
        axes.plot([proven], [100 * FLOOR], "o", color=colour, clip_on=False)


def _growth(panels: list[Axes], rows: Sequence[Row], names: Sequence[str]) -> None:
    """A row for each quantity: times left, memory and candidates right."""
    for name, times, sizes in zip(names, panels[::2], panels[1::2], strict=True):
        along = [row for row in rows if row["along"] == name]
        _line(times, along, "first plan", lambda row: row.get("first_plan_s"))
        _line(times, along, "proof", lambda row: row.get("proof_s"))
        _line(times, along, "whole search", lambda row: row.get("search_s"))
        _line(sizes, along, "peak memory, MiB", lambda row: row["peak_mib"])
        _line(sizes, along, "candidates, 1,000", _thousands)
        times.set(title=f"against {name}", ylabel="seconds")
        for axes, span in ((times, SECONDS), (sizes, SIZES)):
            axes.set(xscale="log", yscale="log", xlabel=name, ylim=span)
            axes.set_xticks(*_ticks(along), rotation=30)
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
            axes.legend(loc="upper left", frameon=False, ncols=3)


def _thousands(row: Row) -> float | None:
    candidates = row.get("candidates")
    return None if candidates is None else candidates / 1000


def _ticks(rows: Sequence[Row]) -> tuple[list[int], list[str]]:
    values = [row["value"] for row in rows]
    return values, [f"{value:,}" for value in values]


def _line(
    axes: Axes, rows: Sequence[Row], label: str, figure: Callable[[Row], float | None]
) -> None:
    """The points of a quantity that were measured."""
    drawn = [(row["value"], figure(row)) for row in rows if figure(row)]
    if drawn:
        axes.plot(*zip(*drawn, strict=True), marker="o", markersize=3, label=label)

"""Figures of a validation as plain data for plotly.js: traces and layout."""

from collections.abc import Callable, Sequence
from html import escape

from planner.calibration.accuracy.errors import by_key
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.summary import GROUPINGS, is_v100
from planner.document.blocks import Figure
from planner.report.validation.tables import GROUP_NAMES, number, percent

Trace = dict[str, object]

COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8a7a00",
    "#7f7f7f",
)
"""Okabe and Ito's palette, which every eye tells apart; its yellow darkened."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
_BANDS = ((0.2, "rgba(127,127,127,0.13)"), (0.1, "rgba(127,127,127,0.18)"))
_BIN = 0.025
_WIDEST = 0.6


def step_scatter(outcomes: Sequence[Outcome]) -> Figure:
    """Predicted over measured step time, both axes logarithmic.

    Args:
        outcomes: Rows; suspect ones are drawn hollow, shape (rows,). [-]

    Returns:
        Points by GPU, the diagonal, bands of 10 and 20 %. [s]
    """
    return _scatter(
        [row for row in outcomes if row.step_error is not None],
        lambda row: (row.measured_step_s or 0.0, row.predicted_step_s or 0.0),
        "step time [s]",
    )


def memory_scatter(outcomes: Sequence[Outcome]) -> Figure:
    """Predicted over measured peak memory, both axes logarithmic.

    Args:
        outcomes: Rows; suspect ones are drawn hollow, shape (rows,). [-]

    Returns:
        Points by GPU, the diagonal, bands of 10 and 20 %. [GiB]
    """
    return _scatter(
        [row for row in outcomes if row.memory_error is not None],
        lambda row: (row.measured_memory_gib or 0.0, row.predicted_memory_gib or 0.0),
        "peak memory [GiB]",
    )


Point = Callable[[Outcome], tuple[float, float]]


def _scatter(rows: Sequence[Outcome], point: Point, what: str) -> Figure:
    values = [value for row in rows for value in point(row)] or [1.0]
    traces = _bands(min(values) * 0.8, max(values) * 1.25)
    groups = by_key(rows, lambda row: row.gpu if row.counted else "suspect")
    for place, name in enumerate(sorted(groups)):
        traces.append(_points(name, groups[name], point, place))
    return {
        "data": traces,
        "layout": {
            "xaxis": {"type": "log", "title": {"text": f"measured {what}"}},
            "yaxis": {"type": "log", "title": {"text": f"predicted {what}"}},
            "height": 620,
        },
    }


def _bands(low: float, high: float) -> list[Trace]:
    """The diagonal, and bands of 10 and 20 % around it."""
    shared = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
    bands: list[Trace] = [
        {
            **shared,
            "name": f"within {width:.0%}",
            "x": [low, high, high, low],
            "y": [
                low * (1 - width),
                high * (1 - width),
                high * (1 + width),
                low * (1 + width),
            ],
            "fill": "toself",
            "fillcolor": colour,
            "line": {"width": 0},
        }
        for width, colour in _BANDS
    ]
    line = {"color": "#7f7f7f", "width": 1, "dash": "dot"}
    exact = {"name": "exact", "x": [low, high], "y": [low, high], "line": line}
    return [*bands, {**shared, **exact}]


def _points(name: str, rows: Sequence[Outcome], point: Point, place: int) -> Trace:
    measured, predicted = zip(*map(point, rows), strict=True)
    symbol = SYMBOLS[place // len(COLOURS) % len(SYMBOLS)]
    hollow = name == "suspect"
    apart = is_v100(rows[0]) and not hollow
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name} (apart)" if apart else name,
        "x": measured,
        "y": predicted,
        "text": [_hover(row) for row in rows],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": COLOURS[place % len(COLOURS)],
            "symbol": f"{symbol}-open" if hollow else symbol,
            "size": 7,
            "opacity": 0.75,
        },
    }


def _hover(row: Outcome) -> str:
    time = f"{number(row.predicted_step_s)} of {number(row.measured_step_s)} s"
    memory = (
        f"{number(row.predicted_memory_gib)} of {number(row.measured_memory_gib)} GiB"
    )
    lines = [
        f"<b>{escape(row.id)}</b>",
        escape(f"{row.model}, {row.gpus} x {row.gpu}"),
        escape(row.layout),
        escape(f"{row.stack}, {row.source}"),
        f"step {time} ({percent(row.step_error, signed=True)})",
        f"memory {memory} ({percent(row.memory_error, signed=True)})",
    ]
    return "<br>".join(line for line in lines if line)


def error_histogram(outcomes: Sequence[Outcome]) -> Figure:
    """Histograms of the errors of step time and of memory.

    Args:
        outcomes: Rows to count, shape (rows,). [-]
    """
    kinds = {
        "step time": [row.step_error for row in outcomes],
        "peak memory": [row.memory_error for row in outcomes],
    }
    traces = [
        {
            "type": "histogram",
            "name": f"{name} ({sum(e is not None for e in errors)} rows)",
            "x": [_clipped(e) for e in errors if e is not None],
            "xbins": {"start": -_WIDEST, "end": _WIDEST, "size": _BIN},
            "marker": {"color": COLOURS[place]},
            "opacity": 0.65,
        }
        for place, (name, errors) in enumerate(kinds.items())
    ]
    axis = {"tickformat": "+.0%", "title": {"text": "predicted / measured - 1"}}
    layout = {
        "barmode": "overlay",
        "xaxis": {**axis, "range": [-_WIDEST, _WIDEST]},
        "yaxis": {"title": {"text": "rows"}},
        "height": 380,
    }
    return {"data": traces, "layout": layout}


def _clipped(error: float) -> float:
    """An error that lies within the outermost bins."""
    edge = _WIDEST - _BIN / 2
    return max(-edge, min(edge, error))


def error_boxes(outcomes: Sequence[Outcome]) -> Figure:
    """The spread of step-time errors in each group, by a choice of groupings.

    Args:
        outcomes: Rows to count, shape (rows,). [-]
    """
    timed = [row for row in outcomes if row.step_error is not None]
    names = list(GROUPINGS)
    traces = [
        {
            "type": "box",
            "orientation": "h",
            "visible": place == 0,
            "x": [row.step_error for row in timed],
            "y": [GROUPINGS[name](row) for row in timed],
            "text": [escape(row.id) for row in timed],
            "hovertemplate": "%{text}: %{x:+.1%}<extra></extra>",
            "boxpoints": "outliers",
            "marker": {"color": COLOURS[0], "size": 4},
        }
        for place, name in enumerate(names)
    ]
    axis = {
        "tickformat": "+.0%",
        "title": {"text": "step time, predicted / measured - 1"},
    }
    layout = {
        "showlegend": False,
        "xaxis": {**axis, "zeroline": True},
        "yaxis": {"automargin": True, "categoryorder": "category descending"},
        "height": 640,
        "updatemenus": [_menu(names)],
    }
    return {"data": traces, "layout": layout}


def _menu(names: Sequence[str]) -> dict[str, object]:
    """Shows one trace of several."""
    buttons = [
        {
            "label": f"by {GROUP_NAMES[name]}",
            "method": "restyle",
            "args": ["visible", [other == name for other in names]],
        }
        for name in names
    ]
    place = {"x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    # The open entry of a menu is always light, so its letters are always dark.
    look = {"bgcolor": "#f4f4f7", "font": {"color": "#1c1c1e"}}
    return {
        "buttons": buttons,
        "direction": "down",
        "showactive": True,
        **place,
        **look,
    }

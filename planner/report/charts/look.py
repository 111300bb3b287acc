"""Colours by meaning, axes and bars of all charts."""

from collections.abc import Sequence

from planner.specs.answer.estimate import WAIT_WORDS

Trace = dict[str, object]

CAUSE_COLOURS = {
    "compute": "compute",
    "recompute": "recompute",
    "tp_comm": "tensor",
    "cp_comm": "context",
    "ep_comm": "expert",
    "pp_comm": "pipeline",
    "dp_comm": "data",
    "optimizer": "end",
    "bubble": "idle",
    "straggler": "straggler",
    **dict.fromkeys(("other", *WAIT_WORDS), "other"),
}
"""Cause of the time breakdown to its colour."""
MARGIN = {"t": 12, "r": 12, "b": 44, "l": 12}
ROW = 26
"""Height of one bar of a chart of horizontal bars. [px]"""


def axis(title: str = "", **more: object) -> dict[str, object]:
    """An axis with a title."""
    return {"title": {"text": title}, **more} if title else dict(more)


def layout(height: int, **more: object) -> dict[str, object]:
    """A layout of some height.

    Args:
        height: Height of the whole chart. [px]
        more: Axes, shapes and the rest. [-]
    """
    return {"height": height, "margin": MARGIN, "showlegend": False, **more}


def bars(names: Sequence[str], lengths: Sequence[float], **more: object) -> Trace:
    """Horizontal bars, the first on top where the axis runs backwards.

    Args:
        names: Name of each bar. [text], shape (bars,)
        lengths: Length of each bar, in any unit, shape (bars,).
        more: Colours, starts and texts. [-]
    """
    return {
        "type": "bar",
        "orientation": "h",
        "y": list(names),
        "x": list(lengths),
        **more,
    }


def downwards(**more: object) -> dict[str, object]:
    """A vertical axis whose first name is on top."""
    return {"autorange": "reversed", "showgrid": False, **more}


def rounded(values: Sequence[float], digits: int = 5) -> list[float]:
    """Numbers with as many digits as an eye can use."""
    return [round(float(value), digits) for value in values]


def wrapped(words: str, width: int = 22) -> str:
    """A label on lines short enough for a telephone."""
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "<br>".join(lines)

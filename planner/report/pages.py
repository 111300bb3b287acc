"""Frame of every page: style, scripts and plotly.js, nothing from outside."""

import json
import re
from datetime import UTC, datetime
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from planner import __version__
from planner.document.blocks import Document


def page_html(page: Document) -> str:
    """A document as one file that needs nothing else."""
    return _template("page.html.j2").render(
        page=page,
        figures=[(chart.id, script_json(chart.figure)) for chart in page.charts()],
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        plotly=_plotly_js(),
    )


def card_html(page: Document) -> str:
    """A page as a part of a notebook: the heading, and all but figures folded below."""
    return _template("card.html.j2").render(page=page)


def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("planner.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["hosts"] = hosts
    return environment.get_template(name)


def hosts(text: str) -> str:
    """A text with the host of every address in its place, for a card."""
    return re.sub(r"https?://(?:www\.)?([^/\s;,)]+)[^\s;,)]*", r"\1", text)


def script_json(figure: dict[str, object]) -> str:
    """JSON that cannot end the surrounding script element."""
    return json.dumps(figure, separators=(",", ":")).replace("<", "\\u003c")


def _plotly_js() -> str:
    """Text of plotly.js with charts on two axes, a third of the whole.

    Source: plotly.js-cartesian-dist-min 4.1.0 of the npm registry, MIT licence.
    """
    script = files("planner.report") / "assets" / "plotly-cartesian.min.js"
    return script.read_text(encoding="utf-8").replace("</script", "<\\/script")

"""Frame of every page: style, scripts and plotly.js, nothing from outside."""

import json
from datetime import UTC, datetime
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from planner import __version__
from planner.report.pages.blocks import Page


def page_html(page: Page) -> str:
    """A page as one file that needs nothing else.

    Args:
        page: The page. [-]

    Returns:
        HTML. [text]
    """
    figures = [(chart.id, chart.figure) for chart in page.charts()]
    return rendered(
        "page.html.j2", title=page.title, page=page, figures=_scripts(figures)
    )


def rendered(template: str, **values: object) -> str:
    """A page template filled in with values, date, version and plotly.js.

    Args:
        template: File name of the template. [text]
        values: Values to show; `figures` are made by `script_json`. [-]

    Returns:
        HTML. [text]
    """
    environment = Environment(
        loader=PackageLoader("planner.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        plotly=_plotly_js(),
        **values,
    )


def _scripts(figures: list[tuple[str, dict[str, object]]]) -> list[dict[str, str]]:
    return [{"id": name, "data": script_json(figure)} for name, figure in figures]


def script_json(figure: dict[str, object]) -> str:
    """JSON that cannot end the surrounding script element.

    Args:
        figure: Data for plotly.js. [-]

    Returns:
        JSON. [text]
    """
    return json.dumps(figure, separators=(",", ":")).replace("<", "\\u003c")


def _plotly_js() -> str:
    """Text of plotly.js from the plotly package."""
    script = files("plotly") / "package_data" / "plotly.min.js"
    return script.read_text(encoding="utf-8").replace("</script", "<\\/script")

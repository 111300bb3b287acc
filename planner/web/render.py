"""Templates of the pages, with the parts of the report's own pages."""

from functools import cache

from fastapi import Response
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from planner import __version__
from planner.report.charts.search import SearchState
from planner.report.pages import hosts, script_json
from planner.web.commands import command_of
from planner.web.fields import FORMS, Form, read_form
from planner.web.question import (
    Answered,
    Counting,
    Refused,
    Searching,
    Told,
    Waiting,
)

PAGES = (
    ("plan", "Plan"),
    ("what-if", "What if"),
    ("compare", "Compare"),
    ("memory", "Memory"),
    ("explain", "Explain"),
    ("rows", "Rows"),
)
"""Pages in order, with their names."""
SHARED = ("model", "on", "method", "seq_len", "global_batch", "framework", "network")
"""Fields that go along to another page. [text]"""
WIDE, HIGH = 600.0, 120.0
"""Size of the picture of a search. [px]"""
UNWRITTEN = {
    "plan": "No launch folder",
    "rows": "No calibration",
}
"""Words before the reason why a file is missing, by page."""


@cache
def _environment() -> Environment:
    made = Environment(
        loader=ChoiceLoader(
            [PackageLoader("planner.web"), PackageLoader("planner.report")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["hosts"] = hosts
    return made


def fragment(template: str, **values: object) -> str:
    """A template filled in."""
    return _environment().get_template(template).render(version=__version__, **values)


def page(
    template: str, form: Form | None, here: str, status: int = 200, **values: object
) -> Response:
    """A whole page.

    Args:
        template: File name of the template. [text]
        form: Form whose job goes along to other pages, or None. [-]
        here: Name of the page. [text]
        status: Status of the answer. [1]
        values: Values to show. [-]
    """
    text = fragment(
        template,
        title=dict(PAGES).get(here, "planner"),
        pages=PAGES,
        here=here,
        form=form,
        shared="" if form is None else shared(form),
        its=FORMS.get(here, ()),
        **values,
    )
    return Response(
        text, status, media_type="text/html", headers={"cache-control": "no-store"}
    )


def shared(form: Form) -> str:
    """The job of a form in an address, for other pages."""
    kept = tuple((name, value) for name, value in form.asked if name in SHARED)
    if form.kind == "what-if" and form.blank:
        return ""
    return read_form("plan", kept).query


def told_html(told: Told | None, form: Form) -> str:
    """A message of a worker as the part of a page."""
    if isinstance(told, Answered):
        return answer_html(told, form)
    if isinstance(told, Refused):
        return refused_html(told, form)
    return fragment("state.html.j2", told=_state(told))


def _state(told: Waiting | Searching | Counting | None) -> dict[str, object]:
    """Values of the template of a state."""
    if isinstance(told, Waiting):
        return {"kind": "waiting", "before": told.before}
    if isinstance(told, Counting):
        return {"kind": "counting", "done": told.done, "count": max(told.count, 1)}
    if told is None:
        return {"kind": "working"}
    last = told.trail[-1]
    return {
        "kind": "searching",
        "best": _seconds(last.incumbent_s),
        "bound": _seconds(last.bound_s),
        "gap": _gap(last),
        "left": f"{told.left:,}",
        "count": max(told.count, 1),
        "settled": told.count - told.left,
        **_lines(told.trail),
    }


def _seconds(value: float | None) -> str:
    return "-" if not value else f"{value:.3f} s"


def _gap(state: SearchState) -> str:
    if not state.incumbent_s or not state.bound_s:
        return "-"
    return f"{max(0.0, 1 - state.bound_s / state.incumbent_s):.2%}"


def _lines(trail: tuple[SearchState, ...]) -> dict[str, str]:
    """Points of both lines in the picture of a search. [px]."""
    best = [(s.seconds, s.incumbent_s) for s in trail if s.incumbent_s]
    bound = [(s.seconds, s.bound_s) for s in trail if s.bound_s]
    values = [value for _, value in (*best, *bound)] or [1.0]
    low, high = min(values), max(values)
    span, end = (high - low) or 1.0, trail[-1].seconds or 1.0
    scale = HIGH - 16

    def line(points: list[tuple[float, float]]) -> str:
        return " ".join(
            f"{WIDE * t / end:.1f},{HIGH - 8 - scale * (v - low) / span:.1f}"
            for t, v in points
        )

    return {"best_line": line(best), "bound_line": line(bound)}


def refused_html(told: Refused, form: Form) -> str:
    """A refusal, marked at its field where it has one."""
    field, label = field_of(told.field, form)
    return fragment("refused.html.j2", message=told.message, field=field, label=label)


def field_of(name: str, form: Form) -> tuple[str, str]:
    """Field of the form for a field of an error.

    Returns:
        Name and label; empty where no field of the form is meant. [text]
    """
    plain = name.removeprefix("--").replace("-", "_").rpartition(".")[2]
    labels = {field.name: field.label for field in FORMS[form.kind]}
    if form.kind == "what-if" and plain == "on":
        plain = "gpu"
    if plain in labels:
        return plain, labels[plain]
    if form.kind == "compare" and plain.startswith("on"):
        return plain, "GPUs"
    return ("layout", "Layout") if name in labels else ("", "")


def answer_html(answer: Answered, form: Form) -> str:
    """An answer as the part of a page."""
    figures = [(c.id, script_json(c.figure)) for c in answer.page.charts()]
    return fragment(
        "answer.html.j2",
        here=form.kind,
        page=answer.page,
        answer=answer,
        command=command_of(form, answer.seconds),
        downloads=_downloads(answer, form),
        onward=_onward(form),
        whys=_whys(answer, form),
        unwritten=UNWRITTEN.get(form.kind, "Not there"),
        figures=figures,
    )


def _downloads(answer: Answered, form: Form) -> list[tuple[str, str]]:
    """Files of an answer: words and address."""
    names = {"compare": "Purchase file", "rows": "Calibration"}
    job = names.get(form.kind, "Job file")
    words = {"zip": "Launch folder", "yaml": job, "html": "Document", "json": "JSON"}
    missing = {"zip": not answer.files, "yaml": not answer.job}
    return [
        (name, _file(form, ending))
        for ending, name in words.items()
        if not missing.get(ending)
    ]


def _file(form: Form, ending: str) -> str:
    """Address of a file of an answer."""
    if form.kind == "rows":
        return f"/rows/{form.values['digest']}/file.{ending}"
    return f"/{form.kind}.{ending}?{form.query}"


def _onward(form: Form) -> list[tuple[str, str]]:
    """Other pages about the same job: words and address."""
    if form.kind not in {"plan", "memory", "explain"}:
        return []
    names = {"explain": "Why this plan?", "memory": "Memory", "what-if": "What if?"}
    return [(w, f"/{k}?{shared(form)}") for k, w in names.items() if k != form.kind]


def _whys(answer: Answered, form: Form) -> list[tuple[str, str]]:
    """Layouts next to the best to ask about: words and address."""
    others = tuple(pair for pair in form.pairs if pair[0] != "layout")
    return [
        (
            words,
            f"/{form.kind}?{read_form(form.kind, (*others, ('layout', layout))).query}",
        )
        for words, (layout,) in answer.more.items()
    ]

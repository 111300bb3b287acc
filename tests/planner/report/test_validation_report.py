"""A validation's tables and page show every row, and stand on their own."""

import json
import re
from html.parser import HTMLParser

import pytest
from plotly.graph_objects import Figure
from rich.console import Console

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.validation import Validation, validation
from planner.document.terminal import report
from planner.report.pages import page_html
from planner.report.validation import validation_document
from planner.report.validation.figures import (
    error_boxes,
    error_histogram,
    memory_scatter,
    step_scatter,
)


def outcome(name: str, **fields: object) -> Outcome:
    known = {
        "id": name,
        "file": "rows.yaml",
        "source": "rows",
        "status": "ok",
        "gpu": "h100-sxm-80gb",
        "gpus": 8,
        "stack": "megatron-2024",
        "seq_len": 8192,
        "layout": "tp8 mb1",
        "verdict": "fits",
        "predicted_step_s": 1.1,
        "step_low_s": 0.9,
        "step_high_s": 1.3,
        "measured_step_s": 1.0,
    }
    return Outcome.model_validate(known | fields)


UNPRICED = {"predicted_step_s": None, "step_low_s": None, "step_high_s": None}


@pytest.fixture
def answer() -> Validation:
    memory = {"predicted_memory_gib": 30.0, "measured_memory_gib": 40.0}
    sweep = [
        outcome(f"sweep-{i}", sweep="a job", layout=f"tp{i}", measured_step_s=i + 1.0)
        for i in range(4)
    ]
    return validation(
        [
            outcome("fine", **memory),
            *sweep,
            outcome("failed", oom=True, measured_step_s=None, verdict="at-risk"),
            outcome("doubtful", counted=False, note="a typo in the table"),
            outcome("old", gpu="v100-sxm2-16gb"),
            outcome(
                "alien", status="unsupported", reason="no GPU <X> & co", **UNPRICED
            ),
            outcome("broken", status="invalid", reason="no layout", **UNPRICED),
            outcome("</script><b>evil</b>"),
        ]
    )


def printed(answer: Validation) -> str:
    console = Console(width=100, markup=False)
    with console.capture() as capture:
        console.print(report(validation_document(answer)))
    return capture.get()


def test_the_text_has_every_part_in_order(answer: Validation) -> None:
    text = printed(answer)
    parts = (
        "11 rows of 1 source: 1 suspect, 1 unsupported, 1 invalid",
        "step time, over rows",
        "step time, over sources",
        "V100 step time",
        "Kendall tau",
        "Out of memory",
        "By GPU",
        "By context length",
        "Largest errors of step time",
        "Largest errors of memory",
        "Suspect rows",
        "a typo in the table",
        "no GPU <X> & co",
        "rows.yaml: broken",
    )
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert "-25.0%" in text
    assert max(map(len, text.splitlines())) <= 100


def test_parts_without_rows_are_left_out() -> None:
    text = printed(validation([outcome("fine")]))
    for absent in ("V100", "Kendall", "memory, over", "Suspect", "Unsupported"):
        assert absent not in text


class Page(HTMLParser):
    """Collects text outside scripts, scripts, and attributes that load something."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.scripts, self.loads = "", [""], list[str]()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.loads += [str(v) for k, v in attrs if k in {"src", "href", "srcset"}]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts[-1] += data
        elif "style" not in self.open:
            self.text += data


@pytest.fixture
def page(answer: Validation) -> Page:
    parser = Page()
    parser.feed(page_html(validation_document(answer)))
    return parser


def test_the_page_shows_every_row(page: Page, answer: Validation) -> None:
    assert [row.id for row in answer.rows if row.id not in page.text] == []
    assert "no GPU <X> & co" in page.text


def test_the_page_loads_nothing(page: Page) -> None:
    assert [link for link in page.loads if not link.startswith("#")] == []
    assert "http" not in page.text
    _, plotly, ours = page.scripts
    assert "http" not in ours
    assert "plotly.js" in plotly[:200]


def test_plotly_knows_every_property_of_the_figures(
    answer: Validation, page: Page
) -> None:
    """Figures are plain data; its own classes refuse a misspelt property."""
    rows, (_, plotly, _) = answer.outcomes, page.scripts
    for draw in (step_scatter, memory_scatter, error_histogram, error_boxes):
        figure = Figure(**draw(rows))
        assert [t for t in figure.data if f'name:"{t.type}"' not in plotly] == []


def test_the_figures_hold_what_was_measured(page: Page) -> None:
    found = re.findall(r'^"figure-\d": (\{.*\}),$', page.scripts[2], re.MULTILINE)
    scatter, histogram, boxes, memory = map(json.loads, found)
    points = [t for t in scatter["data"] if t["mode"] == "markers"]
    hover = "".join(text for trace in points for text in trace["text"])
    assert "<b>fine</b>" in hover
    assert "&lt;/script&gt;" in hover
    names = [trace["name"] for trace in points]
    assert names == ["h100-sxm-80gb", "suspect", "v100-sxm2-16gb (apart)"]
    assert histogram["data"][0]["x"].count(pytest.approx(0.1)) == 3
    assert boxes["data"][0]["y"] == ["h100-sxm-80gb"] * 6
    (point,) = [t for t in memory["data"] if t["mode"] == "markers"]
    assert (point["x"], point["y"]) == ([40.0], [30.0])

"""A document says the same in a terminal, on a screen and on a page."""

import ast
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from planner.document.blocks import (
    Block,
    Chart,
    Document,
    Facts,
    Folded,
    Notes,
    Section,
    Table,
    Tile,
)
from planner.document.screen import screen_of
from planner.document.terminal import report
from planner.report.pages import page_html

ROOT = Path(__file__).parents[3]
DRAWS = {"pages.py", "charts/plots.py", "why.py", "catalog/__init__.py"}
"""Modules of answers with a look of their own: bars, a tree, the catalog."""
WORDS = st.text("abcdefghij<&>[]", min_size=1, max_size=8)
BLOCKS = st.one_of(
    st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12).map(Facts),
    st.builds(Notes, st.lists(WORDS, min_size=1, max_size=4), WORDS),
    st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4).map(
        lambda rows: Table(("x", "y", "z"), rows, title="title")
    ),
)


class Words(HTMLParser):
    """Text outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.inside = "", ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside not in {"script", "style"}:
            self.text += data


def on_page(document: Document) -> str:
    words = Words()
    words.feed(page_html(document))
    return words.text


def in_terminal(document: RenderableType) -> str:
    console = Console(width=200, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(document)
    return capture.get()


def texts(block: Block) -> list[str]:
    if isinstance(block, Facts | Table):
        return [cell for row in block.rows for cell in row]
    assert isinstance(block, Notes)
    return [*block.lines, block.title]


def of(*blocks: Block) -> Document:
    tiles = [Tile("Step time", "1.00 s", "0.90 to 1.10")]
    sections = [Section("all", "All of it", blocks, "a lead")]
    return Document("window", "a job", "It fits", "As given.", tiles, sections, "go on")


@given(st.lists(BLOCKS, min_size=1, max_size=4))
def test_every_text_of_a_document_is_in_a_terminal_and_on_a_page(
    blocks: list[Block],
) -> None:
    document = of(*blocks)
    shown, page = in_terminal(report(document)), on_page(document)
    said = [text for block in blocks for text in texts(block)]
    said += ["a job", "It fits", "As given.", "Step time", "1.00 s", "a lead"]
    assert [text for text in said if text not in shown] == []
    assert [text for text in said if text not in page] == []


def test_figures_and_appendices_are_on_the_page_alone() -> None:
    figure = Chart({"data": [], "layout": {}}, "a chart")
    details = Folded("details", [Notes(["a detail"])])
    appendix = Folded("appendix", [Notes(["far away"])], is_appendix=True)
    document = of(figure, details, appendix)
    shown, page = in_terminal(report(document)), on_page(document)
    for text in ("details", "a detail"):
        assert text in shown
        assert text in page
    for text in ("a chart", "appendix", "far away"):
        assert text not in shown
        assert text in page


def test_a_section_of_figures_alone_is_no_section_of_a_terminal() -> None:
    shown = in_terminal(report(of(Chart({"data": [], "layout": {}}, "a chart"))))
    assert "All of it" not in shown


def test_numbers_stay_whole_where_words_fold() -> None:
    words, number = "many words " * 8, "123,456 to 789,012"
    console = Console(width=60)
    table = Table(("what", "how many"), [(words, number)])
    with console.capture() as capture:
        console.print(report(of(table)))
    assert number in capture.get()


def test_a_screen_has_facts_tables_notes_and_the_next_command() -> None:
    facts, table = Facts([("Size", "7B")]), Table(("run", "step"), [("run-1", "2 s")])
    document = of(
        facts, table, Notes(["a lesson"]), Folded("more", [Notes(["hidden"])])
    )
    shown = in_terminal(screen_of(document, "the end"))
    for text in ("It fits.", "Size", "7B", "run-1", "a lesson", "go on", "the end"):
        assert text in shown
    assert "hidden" not in shown


def test_an_answer_has_no_second_layout() -> None:
    """Documents are drawn in one place; answers know neither rich nor jinja2."""
    answers = ROOT / "planner" / "report"
    drawing = set()
    for path in answers.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            if {name.partition(".")[0] for name in names} & {"rich", "jinja2"}:
                drawing.add(str(path.relative_to(answers)))
    assert drawing <= DRAWS

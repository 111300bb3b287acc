"""The documentation shows what commands print today, and names what is there."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml
from rewritten_blocks import output, rewrite
from shown_commands import PAGES, ROOT, Shown, blocks, shows
from typer.testing import CliRunner

from benchmarks.accuracy import quoted
from benchmarks.accuracy.contact_report import contacts, group_bands, held_rows
from docs.generate.tables import TABLES
from planner import errors
from planner.cli import app

COMMANDS = sorted(typer.main.get_command(app).commands.items())
NAMES = [name for name, _ in COMMANDS]
EVERY = [block for page in PAGES for block in blocks(page)]
RUN = [
    pytest.param(
        block,
        id=f"{block.page}:{block.line}",
        marks=[pytest.mark.slow] if block.slow else [],
    )
    for block in EVERY
    if block.runs
]
README = (ROOT / "README.md").read_text()
PATIENT = {
    name: ["--time-limit", "600"] for name in ("plan", "explain", "size", "diff")
}
"""Options that keep an answer the same on a busy machine, by command. [text]"""
FIGURES = quoted.figures()
"""Figures of accuracy that the pages quote, by name. [text]"""
README_LINES = 200
"""Most lines of the README. [1]"""
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s:]*)(#[^)\s]*)?\)")
"""Link inside the repository: path and anchor."""


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_shows_a_command(name: str) -> None:
    assert f"planner {name}" in README


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=NAMES)
def test_a_command_and_its_parameters_have_help(
    name: str, command: typer.core.TyperCommand
) -> None:
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0
    assert command.help
    assert command.help in done.stdout
    silent = [p.name for p in command.params if not getattr(p, "help", None)]
    assert silent == []


def test_help_lists_every_command_and_the_exit_codes() -> None:
    text = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert [name for name in NAMES if name not in text] == []
    for code in ("0 success", "2 bad input", "3 proven infeasible", "4 time limit"):
        assert code in text


def test_no_block_of_commands_is_taken_for_text() -> None:
    marked = [page.read_text().count("\n```console\n") for page in PAGES]
    read = [sum(b.language == "console" for b in blocks(page)) for page in PAGES]
    assert read == marked


@pytest.mark.parametrize("block", RUN)
def test_a_page_shows_what_its_commands_print(
    block: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, rewriting: bool
) -> None:
    for name in ("configs", "benchmarks", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    printed = []
    for number, (command, shown) in enumerate(block.commands, 1):
        _, *words = shlex.split(command)
        done = CliRunner().invoke(app, words + PATIENT.get(words[0], []))
        last = number == len(block.commands)
        assert done.exit_code == (block.exit_code if last else 0), done.output
        assert rewriting or not shown or shows(shown, done.output), done.output
        printed.append(done.output)
    if rewriting:
        rewrite(block, printed)


SESSIONS = [block for block in EVERY if block.language == "pycon"]


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({block.page for block in SESSIONS}))
def test_a_page_shows_what_python_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(block.text for block in SESSIONS if block.page == page)
    session = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    said: list[str] = []
    ran = doctest.DocTestRunner(verbose=False).run(session, out=said.append)
    assert ran.attempted > 5
    assert not ran.failed, "".join(said)


def test_commands_stand_where_a_test_runs_them() -> None:
    """In console blocks, but for blocks whose comment names another way or a reason."""
    shells = [each for each in EVERY if each.language in {"bash", "sh", "shell"}]
    snippets = [each for each in shells if each.text.startswith("--8<--")]
    assert [each for each in shells if each not in snippets and not each.mark] == []
    words = [line for param in RUN for line, _ in param.values[0].commands]
    assert [line for line in words if not line.startswith("planner ")] == []
    assert len(words) > 20
    plain = r"^ {4}(?:\$ )?(?:planner|python|pip|pytest|mkdocs) "
    indented = [
        p for p in PAGES for _ in re.findall(plain, p.read_text(), re.MULTILINE)
    ]
    assert indented == [ROOT / "README.md"] * 2


def test_a_block_that_is_not_run_here_names_its_test_or_its_reason() -> None:
    others = [each for each in EVERY if each.mark and not each.runs]
    kinds = {each.mark.split(":")[0].partition(" by ")[0] for each in others}
    assert kinds == {"run", "not run"}
    by = [each for each in others if each.mark.startswith("run by ")]
    paths = [ROOT / each.mark.removeprefix("run by ") for each in by]
    strangers = [b for b, p in zip(by, paths, strict=True) if b.page not in _text(p)]
    assert strangers == []


def _text(path: Path) -> str:
    return path.read_text()


def test_a_gap_stands_for_any_text_and_nothing_else_does() -> None:
    assert shows("a b\n...\nd", "a  b\n c\nd\n")
    assert shows("solved, 1.0 s", "solved, 2.5 s")
    assert not shows("a\nb", "a\nc\nb")
    assert not shows("a\n...\nd", "a\nc\n")


def test_a_rewritten_block_keeps_its_gaps() -> None:
    shown = "step 1.2 s\n...\nmemory 3 GiB\nof 80\n"
    now = "step 1.5 s\nloss\nmemory 4 GiB\nnew\nof 80\nend\n"
    assert output(shown, now) == "step 1.5 s\n...\nmemory 4 GiB\nnew\nof 80\n"
    assert output("a 1\n", "a 2\nb\n") == "a 2\nb\n"
    assert output("", "a\n") == ""


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub and mkdocs make them."""
    plain = re.sub(
        r"^(`{3,}).*?^\1$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    heads = re.findall(r"^#+ (.*)$", plain, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """Anchors of tables that are made for the site are checked when it is built."""
    made = [place for place in PAGES if "<!-- table" in place.read_text()]
    for target, anchor in LINK.findall(page.read_text()):
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), target
        if anchor and place not in made:
            assert anchor[1:] in anchors(place), target + anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    tops = r"(?:planner|hardware|configs|tests|benchmarks|docs)/[\w./-]+"
    text = page.read_text()
    named = re.findall(rf"`({tops})`|^--8<-- \"({tops})\"", text, flags=re.MULTILINE)
    paths = {"".join(pair) for pair in named}
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_types_of_the_nomenclature_are_where_it_says() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    types = re.findall(r"\| `(\w+)`, `(planner/[\w/]+\.py)` \|", text)
    assert len(types) > 5
    lost = [n for n, path in types if f"class {n}" not in (ROOT / path).read_text()]
    assert lost == []


def test_a_page_shows_one_launch_folder_in_full() -> None:
    """Every file but the plan and the arguments once more, in YAML."""
    folder = "tests/golden/emit/slurm/llama-3.1-70b-32-h100"
    text = (ROOT / "docs" / "guides" / "launch.md").read_text()
    shown = set(re.findall(rf'^--8<-- "{folder}/(.*)"$', text, flags=re.MULTILINE))
    files = {path.name for path in (ROOT / folder).iterdir()}
    assert shown == files - {"plan.json", "arguments.yaml"}


def test_yaml_of_a_page_is_yaml() -> None:
    shown = [each for each in EVERY if each.language == "yaml"]
    assert len(shown) > 4
    assert [each for each in shown if not yaml.safe_load(each.text)] == []


def test_every_table_of_the_reference_is_on_a_page() -> None:
    places = [
        name
        for page in PAGES
        for name in re.findall(r"<!-- table: ([\w-]+) -->", page.read_text())
    ]
    assert sorted(places) == sorted(TABLES)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("commands", "| `--time-limit S` | `120.0` |"),
        (
            "job",
            "| `seq_len` | integer > 0 ≤ 1,073,741,824 |  | Tokens in one sequence.",
        ),
        ("job", "| `failures` | number and unit: GPU-h, GPU-d, GPU-y |"),
        ("cluster", "| `nodes` |"),
        ("purchase", "| `candidates` | list of [CandidateSpec](#candidatespec) |"),
        ("answers", "| `schema` | `planner/plan@1` |"),
        ("comparison", "| `schema` | `planner/comparison@1` |"),
        ("validation", "| `summary_v100` | [Summary](#summary) |"),
        ("cost", "| `table/table.py` | Fills the one table"),
        ("stacks", "| `megatron-2026` |"),
        ("settings", "| `loss` | `liger` |"),
    ],
)
def test_a_table_of_the_reference_has_a_row(name: str, row: str) -> None:
    assert row in TABLES[name]()


@pytest.mark.parametrize("name", ["job", "cluster", "purchase", "answers"])
def test_every_type_that_a_table_names_has_a_section(name: str) -> None:
    text = TABLES[name]()
    heads = {head.lower() for head in re.findall(r"^## (\w+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", text)) <= heads
    assert heads


def test_every_exit_code_has_a_line() -> None:
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    codes = {each.exit_code for each in kinds if issubclass(each, errors.PlannerError)}
    assert len(codes) == 5
    assert [code for code in sorted(codes) if f"\n| {code} | " not in page] == []


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= README_LINES


@pytest.mark.parametrize("page", quoted.sentences())
def test_figures_of_accuracy_are_those_of_the_results(page: str) -> None:
    """Each stands in a sentence that names its cell; the benchmark writes them all."""
    text = (ROOT / page).read_text()
    assert quoted.page(page, FIGURES) == text
    for sentence in quoted.sentences()[page]:
        (place,) = quoted.places(text, sentence)
        text = text.replace(place[0], "")
    assert re.findall(r"[-+]?\d+\.\d\s%", text) == []


def test_a_figure_of_another_cell_is_not_taken_for_the_sentence_s() -> None:
    """The campaigns' median, in place of the publications', is in the report, too."""
    sentence = "leave one publication out | {source.median} | {source.p90} |"
    right = "| leave one publication out | 7.6 % | 15.0 % |"
    known = {"source.median": "7.6 %", "source.p90": "15.0 %"}
    wrong = right.replace("7.6", "7.8")
    assert quoted.quoted(right, sentence, known) == right
    assert quoted.quoted(wrong, sentence, known) == right
    with pytest.raises(ValueError, match="0 times"):
        quoted.quoted("another page", sentence, known)


def test_the_report_leads_with_first_contact_as_the_ledger_has_it() -> None:
    report = (ROOT / "benchmarks" / "accuracy" / "README.md").read_text()
    parts = [contacts(), "tuned", held_rows(), group_bands()]
    places = [report.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)

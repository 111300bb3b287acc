"""Notebooks of the documentation run, in one process, and show what they end with.

A kernel would bring thirty packages; the cells are plain Python without magics.
"""

import ast
import json
import re
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest

from planner.errors import DISTRIBUTION

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(notebook: Path) -> Iterator[dict[str, Any]]:
    """Cells with code, in order."""
    every = json.loads(notebook.read_text())["cells"]
    yield from (cell for cell in every if cell["cell_type"] == "code")


def shown(source: str, names: dict[str, Any]) -> str:
    """Run a cell as a kernel does; what its last expression shows, if there is one."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102  # our own notebooks
    if last is None:
        return ""
    code = compile(ast.Expression(last.value), "cell", "eval")
    value = eval(code, names)  # noqa: S307  # our own notebooks
    card = getattr(value, "_repr_html_", None)
    return card() if card else repr(value)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    notebook: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    ends = [shown("".join(cell["source"]), names) for cell in cells(notebook)]
    assert sum("<table" in end or "<div" in end for end in ends) >= 2
    assert capsys.readouterr().out == ""


def test_notebooks_are_kept_without_outputs() -> None:
    assert len(NOTEBOOKS) == 2
    every = [cell for notebook in NOTEBOOKS for cell in cells(notebook)]
    assert [cell["outputs"] for cell in every if cell["outputs"]] == []
    assert {cell["execution_count"] for cell in every} == {None}


def test_a_cell_shows_its_last_expression() -> None:
    assert shown("x = 2\nx + 1", {}) == "3"
    assert shown("x = 2", {}) == ""


def brought(package: str) -> set[str]:
    """A package, and those that it needs without extras."""
    needs = [each for each in requires(package) or () if "extra ==" not in each]
    return {package} | {re.split(r"[^\w.-]", each)[0].lower() for each in needs}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_planner_does_not_bring_is_named_at_the_start(notebook: Path) -> None:
    every = json.loads(notebook.read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells(notebook))
    imported = re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
    base = {"planner"}.union(*map(brought, brought(DISTRIBUTION)))
    named = re.search(r"`pip install (.*?)`", "".join(every[0]["source"]))
    assert set(imported) - base == set(named[1].split() if named else ())

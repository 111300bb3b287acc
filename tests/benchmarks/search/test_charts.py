"""The charts of the page, where matplotlib is there to draw them."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.filterwarnings("error")
"""A layout that does not fit its figure only warns."""


def rows() -> list[dict[str, object]]:
    closing = [[1.0, None, 8.0], [2.0, 10.0, 8.0], [5.0, 9.0, 9.0]]
    return [
        {"job": "one", "space": "default", "series": closing},
        {"job": "one", "space": "full", "series": closing[:2]},
        {"job": "two", "space": "default", "series": closing[:1]},
        {"job": "three", "space": "default", "status": "killed"},
    ]


def points() -> list[dict[str, object]]:
    sizes = {"candidates": 1000, "first_plan_s": 1.0, "proof_s": None, "search_s": 2.0}
    return [
        {"along": along, "value": value, "peak_mib": 100.0, **sizes}
        for along, value in (("GPUs", 512), ("GPUs", 1024), ("layers", 24))
    ]


def drawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    pytest.importorskip("matplotlib")
    from benchmarks.search.shown import charts  # noqa: PLC0415  # slow tests alone

    folder.mkdir()
    monkeypatch.setattr(charts, "HERE", folder)
    charts.write_charts(rows(), points())
    return {path.name: path.read_text() for path in folder.iterdir()}


def words(svg: str) -> str:
    """The text of a drawing of our own."""
    return "".join(ET.fromstring(svg).itertext())  # noqa: S314  # our own


@pytest.mark.slow
def test_charts_name_what_they_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = drawn(tmp_path / "once", monkeypatch)
    texts = {name: words(text) for name, text in files.items()}
    assert set(files) == {"gap.svg", "growth.svg"}
    for word in ("one", "two", "default", "full"):
        assert word in texts["gap.svg"]
    assert "three" not in texts["gap.svg"]
    for word in ("against GPUs", "against layers", "peak memory, MiB", "1,024"):
        assert word in texts["growth.svg"]


@pytest.mark.slow
def test_the_same_figures_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = drawn(tmp_path / "once", monkeypatch)
    assert once == drawn(tmp_path / "twice", monkeypatch)

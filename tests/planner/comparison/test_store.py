"""Answers on disk: whole or absent, and asked again when the question changes."""

from pathlib import Path

import pytest

from planner.comparison.store import Store, key_of
from planner.errors import BadInputError


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder")
    assert store.read("a") is None
    store.keep("a", "{}")
    assert store.read("a") == "{}"
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["a.json"]


def test_without_a_folder_nothing_is_kept() -> None:
    store = Store(None)
    store.keep("a", "{}")
    assert store.read("a") is None


def test_a_key_is_of_everything_that_is_asked() -> None:
    """The order of fields does not matter, their values do."""
    key = key_of({"name": "a", "counts": (1, 2)})
    assert key == key_of({"counts": [1, 2], "name": "a"})
    assert key != key_of({"name": "a", "counts": (1, 3)})


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot be written") as refused:
        Store(tmp_path / "file")
    assert refused.value.field == "--resume"

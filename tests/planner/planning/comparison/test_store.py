"""Answers on disk: whole or absent, and asked again when the question changes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.planning.comparison.store import Store, key_of


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder")
    assert store.read("a") is None
    store.keep("a", "{}")
    assert store.read("a") == "{}"
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["a.json"]


@pytest.mark.parametrize("text", ["{}", '{"answer": [1.5, "a"], "x": "\u00e9"}'])
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_file_that_changed_in_one_byte_is_as_good_as_none(
    text: str, at: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    store = Store(folder)
    store.keep("a", text)
    file = folder / "a.json"
    held = bytearray(file.read_bytes())
    at %= len(held)
    same = held[at] == byte
    held[at] = byte
    file.write_bytes(held)
    assert store.read("a") == (text if same else None)


def test_an_answer_under_another_name_is_none(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep("a", "{}")
    (tmp_path / "a.json").rename(tmp_path / "b.json")
    assert store.read("b") is None


@pytest.mark.parametrize("held", [b"", b"\xff\xfe", b"[" * 100_000, None])
def test_what_is_damaged_is_none_and_is_replaced(
    held: bytes | None, tmp_path: Path
) -> None:
    store, file = Store(tmp_path), tmp_path / "a.json"
    if held is None:
        file.mkdir()
    else:
        file.write_bytes(held)
    assert store.read("a") is None
    store.keep("a", "{}")
    assert store.read("a") == (None if held is None else "{}")


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

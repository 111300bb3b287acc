"""Broken rows are named with file, id and field, and the others are still read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from measured_rows import changed

from planner.calibration.rows.rows import Reading, read_rows
from planner.errors import BadInputError

Read = Callable[..., Reading]


def test_a_row_of_raw_blocks_alone_is_read(read: Read) -> None:
    row = read(changed()).rows[0]
    assert (row.id, row.source_key, row.group) == ("mine", "mine", "mine")
    assert row.counted


@pytest.mark.parametrize(
    ("broken", "field", "says"),
    [
        ({"layout": None}, "layout", "missing"),
        ({"model": {"layers": "many"}}, "model.layers", "many"),
        ({"layout": {"dp": 4}}, "dp * tp * pp * cp is 8", "gpus is 16"),
        ({"layout": {"dp": None, "tp": 3}}, "dp absent, tp 3", "gpus is 16"),
        (
            {"measured": {"peak_memory_gb": 3, "memory_kind": "GiB swapped out"}},
            "measured.memory_kind",
            "no known counter",
        ),
        (
            {"measured": {"peak_memory_gb": 3, "memory_kind": "reserved, TiB"}},
            "measured.memory_kind",
            "unknown unit",
        ),
        (
            {"measured": {"peak_memory_gb": "much"}},
            "measured.peak_memory_gb",
            "no amount",
        ),
        (
            {"normalised": {"memory": {"gib": 3, "counter": "virtual"}}},
            "normalised.memory.counter",
            "virtual",
        ),
    ],
)
def test_a_broken_row_is_named_and_the_next_is_read(
    read: Read, broken: dict[str, Any], field: str, says: str
) -> None:
    reading = read(changed(**broken), changed(id="sound"))
    assert [row.id for row in reading.rows] == ["sound"]
    (wrong,) = reading.invalid
    assert wrong.id == "mine"
    assert Path(wrong.file).name == "mine.yaml"
    assert field in wrong.reason
    assert says in wrong.reason
    assert "\n" not in wrong.reason


def test_a_suspect_row_may_contradict_its_gpu_count(read: Read) -> None:
    row = read(changed(layout={"dp": 4}, check="suspect(dp)")).rows[0]
    assert not row.counted


def test_rows_of_one_id_are_all_refused(read: Read) -> None:
    reading = read(changed(), changed(), changed(id="single"))
    assert [row.id for row in reading.rows] == ["single"]
    assert [bad.id for bad in reading.invalid] == ["mine", "mine"]
    assert "2 times" in reading.invalid[0].reason


@pytest.mark.parametrize(
    ("text", "says"),
    [("a: 1", "a dict"), ("", "nothing"), ("[1", "cannot be read"), ("- 7", "block")],
)
def test_a_file_that_is_no_list_of_rows_is_named(
    tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "odd.yaml").write_text(text)
    (wrong,) = read_rows([tmp_path]).invalid
    assert says in wrong.reason
    assert wrong.file.endswith("odd.yaml")


def test_an_empty_folder_and_a_missing_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="holds no rows"):
        read_rows([tmp_path])
    with pytest.raises(BadInputError, match="no such file"):
        read_rows([tmp_path / "absent"])

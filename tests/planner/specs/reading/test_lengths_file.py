"""Files of lengths: forms of a line, many lengths, and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import BadInputError
from planner.job.resolve import resolve
from planner.specs.job import JobSpec
from planner.specs.lengths import MOST_BARS
from planner.specs.reading.lengths_file import read_lengths


def written(folder: Path, text: str) -> Path:
    path = folder / "lengths.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "lines",
    [
        ["512", "256", "", "512", " 512 "],
        [json.dumps({"length": n, "id": n}) for n in (512, 256, 512, 512)],
    ],
)
def test_equal_lengths_are_one_bar(tmp_path: Path, lines: list[str]) -> None:
    found = read_lengths(written(tmp_path, "\n".join(lines)))
    assert [(bar.length, bar.share) for bar in found] == [(256, 0.25), (512, 0.75)]


def test_more_lengths_than_bars_are_rounded_up(tmp_path: Path) -> None:
    most = 3 * MOST_BARS
    found = read_lengths(written(tmp_path, "\n".join(map(str, range(1, most + 1)))))
    assert len(found) == MOST_BARS
    assert (found[0].length, found[-1].length) == (3, most)
    assert sum(bar.share for bar in found) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("512\n-3", "line 2"),
        ("12.5", "line 1"),
        ("true", "line 1"),
        ('{"tokens": 4}', "line 1"),
        ("a text", "line 1"),
        ("\n\n", "has no lengths"),
    ],
)
def test_a_line_without_a_length_is_named(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadInputError, match=why) as error:
        read_lengths(written(tmp_path, text))
    assert error.value.field == "training.lengths.file"


def job(lengths: dict[str, Any]) -> JobSpec:
    fields: dict[str, Any] = {
        "model": "llama-3.1-8b",
        "cluster": "dgx-h100-4-nodes",
        "framework": "accelerate",
        "training": {"seq_len": 2048, "global_batch": 64, "lengths": lengths},
    }
    return JobSpec.model_validate(fields)


def test_a_job_finds_its_file_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "256\n1024\n1024\n1024\n")
    (listed,) = resolve(job({"file": "lengths.txt"}), file="j.yaml", base=tmp_path)
    (same,) = resolve(job({256: 0.25, 1024: 0.75}), file="j.yaml", base=tmp_path)
    assert listed.training == same.training


def test_a_missing_file_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        resolve(job({"file": "none.txt"}), file="j.yaml", base=tmp_path)

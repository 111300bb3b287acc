"""Rows to test with: a sample of the published ones, and one that is made by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from measured_rows import SAMPLE, MakeRow, changed

from planner.calibration.rows.rows import Reading, Row, read_rows


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Reading]:
    """Reads items as one file of rows."""

    def of(*items: Any) -> Reading:
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump(list(items)))
        return read_rows([tmp_path])

    return of


@pytest.fixture
def make_row(read: Callable[..., Reading]) -> MakeRow:
    """The plain row with fields of its blocks replaced."""

    def of(**blocks: Any) -> Row:
        reading = read(changed(**blocks))
        assert not reading.invalid, reading.invalid
        return reading.rows[0]

    return of


@pytest.fixture(scope="session")
def sample() -> tuple[Row, ...]:
    """A score of published rows, one or two per source."""
    return read_rows([SAMPLE]).rows

"""A row is met once: new rows are priced into a file that nothing overwrites."""

import csv
from pathlib import Path

import pytest
import yaml

from benchmarks.accuracy import first_contact, ledger
from planner.errors import BadInputError

ROWS = Path(__file__).parents[2] / "benchmarks" / "accuracy" / "rows"
FIRST = "0.1.0-2f0c99b"


@pytest.fixture
def new_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three rows: two as if new, one that the ledger holds; the ledger is a copy."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    (folder / f"{FIRST}.csv").write_bytes((ledger.FOLDER / f"{FIRST}.csv").read_bytes())
    monkeypatch.setattr(ledger, "FOLDER", folder)
    old, *others = yaml.safe_load((ROWS / "megascale.yaml").read_text())[:3]
    for number, row in enumerate(others):
        row["id"] = f"new-{number}"
    file = tmp_path / "unseen.yaml"
    file.write_text(yaml.safe_dump([old, *others]))
    return file


def test_new_rows_are_priced_once_and_known_ones_not_at_all(new_rows: Path) -> None:
    file, number = first_contact.meet([new_rows], "9.9.9-abcdef0")
    assert (file.name, number) == ("9.9.9-abcdef0.csv", 2)
    assert ledger.versions() == [FIRST, "9.9.9-abcdef0"]
    rows = ledger.every_row("9.9.9-abcdef0")
    assert [row["id"] for row in rows] == ["new-0", "new-1"]
    for row in rows:
        low, high = float(row["step_low_s"]), float(row["step_high_s"])
        assert low < float(row["predicted_step_s"]) < high
    with pytest.raises(BadInputError, match="met before"):
        first_contact.meet([new_rows], "9.9.9-fffffff")
    assert {one.id for one in ledger.met_times()} >= {"new-0", "new-1"}


def test_a_version_writes_one_file(new_rows: Path) -> None:
    before = (ledger.FOLDER / f"{FIRST}.csv").read_bytes()
    with pytest.raises(BadInputError, match="a version meets rows once"):
        first_contact.meet([new_rows], FIRST)
    assert (ledger.FOLDER / f"{FIRST}.csv").read_bytes() == before


def test_rows_that_constants_were_fitted_to_were_met() -> None:
    with first_contact.RESULTS.open() as file:
        fitted = {row["id"] for row in csv.DictReader(file)}
    met = {row["id"] for row in ledger.every_row(FIRST)}
    assert fitted
    assert met
    assert first_contact.met_before() == fitted | met


def test_a_changed_model_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"status": " M planner/x.py", "rev-parse": "abcdef0"}
    monkeypatch.setattr(first_contact, "_git", lambda *words: told[words[0]])
    with pytest.raises(BadInputError, match=r"planner/x\.py"):
        first_contact.frozen_version()
    told["status"] = ""
    assert first_contact.frozen_version().endswith("-abcdef0")


def test_columns_begin_as_those_of_the_first_file() -> None:
    first = list(ledger.every_row(FIRST)[0])
    assert first == [*first_contact.COLUMNS, "date"]


def test_the_command_says_why_it_writes_nothing(
    new_rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_contact, "frozen_version", lambda: FIRST)
    with pytest.raises(SystemExit):
        first_contact.main([str(new_rows)])
    assert "meets rows once" in capsys.readouterr().err

"""Every row of the files is in the answer, whatever becomes of it."""

from pathlib import Path

import pytest
import yaml

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.validate import validate
from planner.calibration.rows.rows import Row
from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.job.calibration_file import CalibrationFile, StackFit

ROW = {
    "id": "one",
    "model": {"name": "m", "layers": 8, "hidden": 64, "heads": 8, "vocab": 100},
    "hardware": {"gpu": "H100-80GB", "gpus": 8, "gpus_per_node": 8},
    "job": {
        "seq_len": 128,
        "global_batch": 8,
        "precision": "bf16",
        "optimizer": "Adam",
        "framework": "Megatron-LM",
    },
    "layout": {"tp": 8, "pp": 1, "cp": 1, "dp": 1, "micro_batch": 1},
    "measured": {"step_time_s": 1.0},
    "check": "ok",
}


def rows_file(folder: Path, *rows: object, name: str = "rows.yaml") -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump(list(rows)))
    return file


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row takes two seconds."""

    def price_row(row: Row, _: object, own: object = None) -> Outcome:
        assert own is None
        return Outcome(
            id=row.id,
            file=row.file,
            source=row.source_key,
            status="ok",
            predicted_step_s=2.0,
            measured_step_s=row.measured.step_time_s,
        )

    monkeypatch.setattr("planner.calibration.accuracy.validate.price_row", price_row)


@pytest.mark.usefixtures("priced")
def test_a_broken_row_leaves_the_others(tmp_path: Path) -> None:
    without = {key: value for key, value in ROW.items() if key != "layout"}
    file = rows_file(tmp_path, ROW, {**without, "id": "broken"}, {**ROW, "id": "two"})
    answer = validate([file], catalog=SHIPPED)
    states = {row.id: row.status for row in answer.rows}
    assert states == {"one": "ok", "two": "ok", "broken": "invalid"}
    (broken,) = [row for row in answer.rows if row.id == "broken"]
    assert broken.file == str(file)
    assert "layout" in broken.reason
    assert answer.summary.step_time.bias == pytest.approx(1.0)
    assert answer.summary.invalid == 1


@pytest.mark.usefixtures("priced")
def test_progress_ends_with_all_rows(tmp_path: Path) -> None:
    file = rows_file(tmp_path, *({**ROW, "id": str(i)} for i in range(20)))
    told: list[tuple[int, int]] = []
    validate(
        [file], progress=lambda done, total: told.append((done, total)), catalog=SHIPPED
    )
    assert told == [(8, 20), (16, 20), (20, 20)]


def test_files_without_one_good_row_are_refused_with_the_reasons(
    tmp_path: Path,
) -> None:
    file = rows_file(tmp_path, *({"id": f"broken-{i}"} for i in range(7)))
    with pytest.raises(BadInputError) as caught:
        validate([file], catalog=SHIPPED)
    told = str(caught.value)
    assert "no row could be read" in told
    assert f"{file}: broken-0: " in told
    assert "and 2 more" in told
    empty = rows_file(tmp_path, name="empty.yaml")
    with pytest.raises(BadInputError, match="the files hold none"):
        validate([empty], catalog=SHIPPED)


@pytest.mark.slow
def test_workers_change_nothing(tmp_path: Path) -> None:
    file = rows_file(tmp_path, *({**ROW, "id": str(i)} for i in range(65)))
    alone = validate([file], workers=1, catalog=SHIPPED)
    assert validate([file], workers=2, catalog=SHIPPED) == alone
    assert [row.id for row in alone.rows] == [str(i) for i in range(65)]


def test_what_the_user_fitted_moves_the_prediction(tmp_path: Path) -> None:
    file = rows_file(tmp_path, ROW)
    (plain,) = validate([file], catalog=SHIPPED).rows
    assert plain.status == "ok", plain.reason
    fit = StackFit(
        gpu=plain.gpu,
        stack=plain.stack,
        constants={"latency": 3.0},
        rows=3,
        residual=0.01,
    )
    (moved,) = validate(
        [file], calibration=CalibrationFile(stacks=(fit,)), catalog=SHIPPED
    ).rows
    before, after = plain.predicted.step_time_s, moved.predicted.step_time_s
    assert before is not None
    assert after is not None
    assert after > before

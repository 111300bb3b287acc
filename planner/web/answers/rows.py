"""Answer of the page of measured rows: errors, and a calibration."""

from pathlib import Path
from typing import Any

import yaml

from planner.calibration.accuracy.validation import Validation
from planner.calibration.rows.logs import read_log
from planner.errors import BadInputError, PlannerError
from planner.hardware.reading.files import SHIPPED
from planner.hardware.reading.yaml_text import parse_yaml
from planner.questions.calibrate import fitted
from planner.questions.validate import beside_log, validated
from planner.report.validation import summary_document
from planner.web.answers.line import line_of
from planner.web.answers.plan import Tell
from planner.web.question import Answered, Counting, Question

NAMES = ("model", "cluster", "config")
"""Fields of a row whose text may name a file. [text]"""


def rows_answer(question: Question, tell: Tell, folder: Path) -> Answered:
    """Hold measured rows, or a log, against predictions.

    Args:
        question: The question; `content` is the text itself. [-]
        tell: Told of rows done. [-]
        folder: Empty folder, for the text. [path]

    Raises:
        BadInputError: The text is neither rows nor a log of a known framework.
    """
    if question.get("is") == "log":
        return _of_log(question, folder)
    file = folder / "rows.yaml"
    file.write_text(question.get("content"), encoding="utf-8")
    _refuse_paths(file)
    found = validated(
        [file],
        catalog=SHIPPED,
        calibration=None,
        told=lambda done, count: tell(Counting(done, count)),
    )
    calibration, why = _calibrated(file)
    return _answered(found, calibration, why)


def _of_log(question: Question, folder: Path) -> Answered:
    if not question.get("layout"):
        raise BadInputError(
            "is needed: a log is held against a layout",
            field="layout",
            allowed="key=value pairs, as tp=2,pp=1",
        )
    file = folder / "run.log"
    file.write_text(question.get("content"), encoding="utf-8")
    found = beside_log(line_of(question).job(), read_log(file), file)
    return _answered(found, "", "one log is no sweep of rows")


def _answered(found: Validation, calibration: str, why: str) -> Answered:
    return Answered(
        page=summary_document(found),
        json=found.model_dump_json(by_alias=True, indent=2),
        job=calibration,
        unwritten=why,
    )


def _calibrated(file: Path) -> tuple[str, str]:
    """Factors fitted to the rows, or the reason why there are none."""
    try:
        return fitted([file], SHIPPED, None, warn=lambda _: None).text, ""
    except PlannerError as error:
        return "", str(error).replace(f"{file}: ", "")


def _refuse_paths(file: Path) -> None:
    """Refuse rows that name files of this machine."""
    try:
        read = parse_yaml(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError):
        return  # the reader of rows says what is wrong
    for value in _named(read, 0):
        if value.startswith(("/", "~", ".", "\\")):
            raise BadInputError(
                "names a file, and none is read here", field="content", value=value
            )


def _named(read: Any, depth: int) -> list[str]:
    """Texts that stand where a row names model or cluster."""
    if depth > 20:
        return []
    if isinstance(read, list):
        return [text for each in read for text in _named(each, depth + 1)]
    if not isinstance(read, dict):
        return []
    own = [read[name] for name in NAMES if isinstance(read.get(name), str)]
    return own + [text for each in read.values() for text in _named(each, depth + 1)]

"""Launch files of frameworks' own repositories, re-created by their values."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from planner.job.resolve import resolve
from planner.launch.brief import Reading
from planner.launch.importing import (
    UserOverrides,
    import_spec,
    read_launch,
    settled,
)
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import RankedPlan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "golden" / "import"


class Answers(BaseModel):
    """Answers that the files cannot give."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = ""
    cluster: str = ""
    node: str = ""
    nodes: int | None = None


class Case(BaseModel):
    """A folder of launch files with the fields that must be read from them.

    Attributes:
        title: Model and machine. [text]
        source: Repository, release and path. [text]
        target: Framework of the files. [text]
        told: Answers that the files cannot give. [-]
        set: Fields of the spec that the files leave open. [text]
        layout: Fields of the layout that must be read. [-]
        training: Fields of the training block that must be read. [-]
        unknown: Settings that are not understood, by name. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    source: str
    target: str
    told: Answers
    set: tuple[str, ...] = ()
    layout: dict[str, Any]
    training: dict[str, Any]
    unknown: tuple[str, ...] = ()


def cases() -> dict[str, Case]:
    """Cases by the path of their folder. [-]."""
    found = sorted(FOLDER.glob("*/*/case.yaml"))
    return {
        str(path.parent.relative_to(FOLDER)): Case.model_validate(
            yaml.safe_load(path.read_text())
        )
        for path in found
    }


def reading_of(name: str, case: Case) -> Reading:
    """Reading of the files of a case.

    Args:
        name: Path of the case's folder. [text]
        case: The case. [-]

    Returns:
        Settings that were understood, and those that were not. [-]
    """
    files = [path for path in (FOLDER / name).iterdir() if path.name != "case.yaml"]
    return read_launch(sorted(files), case.target)


def priced(name: str, case: Case) -> RankedPlan:
    """The prediction for the run that the files of a case start.

    Args:
        name: Path of the case's folder. [text]
        case: The case. [-]

    Returns:
        Layout and estimate. [-]
    """
    told = UserOverrides(**case.told.model_dump(), ignore=case.unknown)
    reading = settled(reading_of(name, case), told)
    fields = import_spec(reading, told, case.set)
    layout = PartialLayout.model_validate(fields.pop("layout"))
    spec = JobSpec.model_validate(fields)
    (workload,) = resolve(spec, file=name, base=FOLDER / name)
    return predict(workload, layout)

"""The manifest of a folder of short runs: job, budget and runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.errors import BadInputError
from planner.hardware.reading.documents import DocumentError, is_there, plain_json
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.loading import Job
from planner.launch.brief import LaunchFile
from planner.models import preset_names
from planner.specs.job import JobSpec
from planner.specs.reading.invalid import explained
from planner.specs.reading.read import portable, user_text

MANIFEST = "tune.json"
"""File that marks a folder of planner tune. [text]"""
SCHEMA: Literal["planner/tune@1"] = "planner/tune@1"


class ManifestRun(BaseModel):
    """One run; its plan lies in the run's folder.

    Attributes:
        name: Folder of the run. [text]
        framework: Framework of the plan. [text]
        settings: Values that the search chose for the training block. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^run-\d+$")
    framework: str
    settings: dict[str, str] = {}


class Manifest(BaseModel):
    """All that `planner tune DIR` needs beside the runs.

    Attributes:
        spec: Fields of the job, paths made whole. [-]
        file: File of the job, as it was given. [text]
        top: Most plans of a search that become runs. [1]
        budget: Most runs to measure. [1]
        hardware: Folder of hardware laid over ours; empty for none. [path]
        calibration: Measurements given at the start, or None. [-]
        runs: The runs, the first choice first, shape (runs,). [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_name: Literal["planner/tune@1"] = Field(default=SCHEMA, alias="schema")
    spec: dict[str, Any]
    file: str
    top: int = Field(ge=1)
    budget: int = Field(ge=1)
    hardware: str = ""
    calibration: CalibrationFile | None = None
    runs: tuple[ManifestRun, ...] = Field(min_length=1)

    @classmethod
    def of(cls, job: Job, **fields: Any) -> "Manifest":
        """The manifest of a job."""
        spec = portable(job.spec, job.base, preset_names(), job.catalog)
        return cls(spec=spec, file=job.file, calibration=job.calibration, **fields)

    def changed(self, top: int | None, budget: int | None) -> "Manifest":
        """The manifest with other numbers.

        Args:
            top: Most plans of a search that become runs; None to keep it. [1]
            budget: Most runs to measure; None to keep it. [1]
        """
        numbers = {"top": top or self.top, "budget": budget or self.budget}
        return self.model_copy(update=numbers)

    def job(self, folder: Path, catalog: Catalog, own: CalibrationFile | None) -> Job:
        """The job under a calibration.

        Args:
            folder: Folder of the manifest. [path]
            catalog: Files of facts. [-]
            own: The calibration, or None. [-]
        """
        file = str(folder / MANIFEST)
        try:
            spec = JobSpec.model_validate(self.spec)
        except ValidationError as error:
            raise explained(error, JobSpec, file=file, inside="spec") from error
        return Job(spec, file, folder, catalog, own, measured_in=file).asking(spec)

    @property
    def text(self) -> LaunchFile:
        """The manifest as a file. [-]."""
        return LaunchFile(
            MANIFEST, self.model_dump_json(by_alias=True, indent=2, exclude_none=True)
        )


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder.

    Args:
        folder: Folder that `planner tune --out` wrote. [path]

    Raises:
        BadInputError: The folder was not made by planner tune, or a field is wrong.
    """
    file = folder / MANIFEST
    if not is_there(file):
        raise BadInputError(
            f"holds no {MANIFEST}, so planner tune did not make it",
            file=str(folder),
            allowed="a folder of planner tune SPEC --out DIR",
        )
    try:
        fields = plain_json(user_text(file))
    except DocumentError as error:
        raise BadInputError(error.problem, file=str(file)) from error
    schema = fields.get("schema") if isinstance(fields, Mapping) else None
    if schema != SCHEMA:
        raise BadInputError(
            "is no manifest of this version",
            file=str(file),
            field="schema",
            value=schema,
            allowed=SCHEMA,
        )
    try:
        return Manifest.model_validate(fields, strict=False)
    except ValidationError as error:
        raise explained(error, Manifest, file=str(file)) from error

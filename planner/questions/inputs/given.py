"""Jobs, layouts and files as callers in Python give them."""

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError

from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile, read_calibration
from planner.job.loading import Job as LoadedJob
from planner.questions.inputs.overlay import catalog_with
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import Layout, PartialLayout
from planner.specs.reading.invalid import explained
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import (
    Fields,
    assigned,
    locate,
    read_mapping,
)

Job = JobSpec
FilePath = str | os.PathLike[str]
JobLike = FilePath | Mapping[str, Any] | Job
"""A file or the name of a known job, the fields of one, or a job."""
LayoutLike = str | Mapping[str, Any] | PartialLayout | Layout
"""The short form, fields, or a layout of another answer."""
CalibrationLike = FilePath | CalibrationFile
"""A file, or the `file` of what `planner.calibrate` returns."""
Changes = Mapping[str, object]
"""Dotted path of a field to the value that replaces it."""
UNNAMED = "job"
"""Name of a job without a file, in messages. [text]"""


def job_given(
    job: JobLike,
    changes: Changes | None,
    catalog: Catalog,
    calibration: CalibrationLike | None,
    layout: LayoutLike | None = None,
) -> LoadedJob:
    """Read a job, without a look at its names.

    Args:
        job: The job. [-]
        changes: Fields to replace. [-]
        catalog: Files of facts. [-]
        calibration: What the user measured, or None. [-]
        layout: In place of the job's; None: the job's stays. [-]

    Returns:
        The job. [-]

    Raises:
        BadInputError: A file or a field is wrong.
    """
    name, base, fields = fields_given(job)
    own = _layout_given(layout)
    spec = assigned(fields, assignments(changes), base, name, catalog, own)
    measured = calibration_given(calibration, catalog)
    origin = measured_in(calibration)
    return LoadedJob(spec, name, base, catalog, measured, measured_in=origin)


def measured_in(calibration: CalibrationLike | None) -> str:
    """Name of a calibration, for messages.

    Args:
        calibration: A file, its content, or None. [-]

    Returns:
        Path of the file, or a name in place of one. [text]
    """
    is_file = isinstance(calibration, str | os.PathLike)
    return str(calibration) if is_file else UNNAMED


def looked_up(
    job: JobLike,
    changes: Changes | None,
    catalog: Catalog,
    calibration: CalibrationLike | None,
    layout: LayoutLike | None = None,
) -> LoadedJob:
    """Read a job and look up its names.

    Args:
        job: The job. [-]
        changes: Fields to replace. [-]
        catalog: Files of facts. [-]
        calibration: What the user measured, or None. [-]
        layout: In place of the job's; None: the job's stays. [-]

    Returns:
        The job. [-]

    Raises:
        BadInputError: A file, a field or a name is wrong.
    """
    read = job_given(job, changes, catalog, calibration, layout)
    return read.asking(read.spec)


def fields_given(job: JobLike) -> tuple[str, Path, Fields]:
    """Fields of a job, free to be changed.

    Args:
        job: The job. [-]

    Returns:
        Name for messages, folder that relative paths start from, and the fields. [-]

    Raises:
        BadInputError: The job is of no known kind, or its file cannot be read.
    """
    if isinstance(job, str | os.PathLike):
        file = locate(Path(job))
        return str(job), file.parent, read_mapping(file, pipes=True)
    if isinstance(job, Job):
        plain = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return UNNAMED, Path.cwd(), plain
    if isinstance(job, Mapping):
        return UNNAMED, Path.cwd(), deepcopy(dict(job))
    raise BadInputError(
        "is no job", value=job, allowed="a path, a mapping of fields or planner.Job"
    )


def assignments(changes: Changes | None) -> list[str]:
    """Changes in the form that the command line has.

    Args:
        changes: Dotted path to value, or None. [-]

    Returns:
        `a.b.c=value` each. [text]

    Raises:
        BadInputError: YAML has no such value.
    """
    return [f"{path}={_yaml(path, value)}" for path, value in (changes or {}).items()]


def _yaml(path: str, value: object) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        text = yaml.safe_dump(plain, default_flow_style=True, width=float("inf"))
    except yaml.representer.RepresenterError as error:
        raise BadInputError(
            "is no value of YAML", file="--set", field=path, value=value
        ) from error
    return text.removesuffix("...\n").strip()


def _layout_given(layout: LayoutLike | None) -> PartialLayout | None:
    """The part of a layout that is fixed, None without a layout."""
    if layout is None or isinstance(layout, PartialLayout):
        return layout
    if isinstance(layout, str):
        return read_layout(layout)
    if isinstance(layout, Layout):
        layout = layout.model_dump(mode="json", by_alias=True)
    try:
        return PartialLayout.model_validate(layout)
    except ValidationError as error:
        raise explained(error, PartialLayout, file="layout") from error


def calibration_given(
    calibration: CalibrationLike | None, catalog: Catalog
) -> CalibrationFile | None:
    """Read a calibration.

    Args:
        calibration: A file, its content, or None. [-]
        catalog: Files of facts. [-]

    Returns:
        The content, None without a calibration. [-]

    Raises:
        BadInputError: The file is wrong.
    """
    if calibration is None or isinstance(calibration, CalibrationFile):
        return calibration
    return read_calibration(Path(calibration), catalog)


def catalog_given(hardware: FilePath | None) -> Catalog:
    """Read a folder of hardware, and lay it over ours.

    Args:
        hardware: The folder, or None. [path]

    Returns:
        Files of facts. [-]

    Raises:
        BadInputError: No such folder, or a file in it is wrong.
    """
    return catalog_with(path_given(hardware))


def path_given(path: FilePath | None) -> Path | None:
    """Path of a file or a folder.

    Args:
        path: Path, or None. [-]

    Returns:
        The path, or None. [-]
    """
    return None if path is None else Path(path)


def paths_given(paths: FilePath | Sequence[FilePath]) -> list[Path]:
    """Paths of one or several files.

    Args:
        paths: One path, or several. [-]

    Returns:
        The paths. [-]
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [Path(path) for path in several]


def within(field: str, value: float, least: float, most: float = inf) -> None:
    """Refuse a number that is too small or too large.

    Args:
        field: Name of the argument. [text]
        value: The number. [any]
        least: Least legal number. [any]
        most: Largest legal number. [any]

    Raises:
        BadInputError: The number is outside.
    """
    if not least <= value <= most:
        allowed = f"{least:g} or more" if most == inf else f"{least:g} to {most:g}"
        raise BadInputError(
            "is out of range", field=field, value=value, allowed=allowed
        )

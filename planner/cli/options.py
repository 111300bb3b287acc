"""Options that several commands have."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from hardware.catalog import CatalogError, overlay
from planner.errors import BadInputError

Spec = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC",
        help="YAML file of a job, or the name of one in configs/jobs.",
        show_default=False,
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="A.B.C=VALUE",
        help="Replace a field of the spec; repeatable.",
        show_default=False,
    ),
]
JsonTo = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write JSON to a file; - prints it, and nothing else, on stdout.",
        show_default=False,
    ),
]
Hardware = Annotated[
    Path | None,
    typer.Option(
        "--hardware",
        metavar="DIR",
        help="Folder with your own gpus, links, nodes, clusters, calibration; "
        "a file in it adds an entry or replaces ours.",
        show_default=False,
    ),
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="What profile or calibrate measured on your machines; it replaces ours.",
        show_default=False,
    ),
]

Robust = Annotated[
    Literal["off", "on"],
    typer.Option(
        "--robust",
        help="on: of the plans that tie, put the one first that has more free memory, "
        "then fewer axes, then the framework's defaults.",
    ),
]


def lay_over(hardware: Path | None) -> None:
    """Lay the folder of `--hardware` over our own files, or take the last one away.

    Args:
        hardware: The folder, or None. [-]

    Raises:
        BadInputError: No such folder, or a file in it is wrong.
    """
    try:
        overlay(hardware)
    except CatalogError as error:
        raise BadInputError(str(error), field="--hardware") from error

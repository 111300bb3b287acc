"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

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

"""Options of commands that plan many jobs: where they are planned, and what is kept."""

from pathlib import Path
from typing import Annotated

import typer

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Plan on the workers of a Dask cluster, as tcp://host:8786; needs "
        "the extra [distributed].",
        show_default=False,
    ),
]
FallBack = Annotated[
    bool,
    typer.Option(
        "--fall-back",
        help="Plan on this machine where the scheduler cannot be reached.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Keep what is finished in this folder, and skip those that are there.",
        show_default=False,
    ),
]

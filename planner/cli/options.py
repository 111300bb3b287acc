"""Options that several commands have."""

from pathlib import Path
from typing import Annotated, Literal

import typer

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
        help="on: at most search.memory_risk of running out of memory, the simplest "
        "of tied plans first; off: the fastest whose predicted memory fits.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        min=0,
        metavar="S",
        help="Seconds for everything, from the start of the command.",
    ),
]

TO_PRICE = 60.0
"""Most time of a command that prices layouts and searches none. [s]"""

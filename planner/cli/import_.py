"""`planner import`: launch files back into a spec with its layout."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from planner.cli.guard import guarded
from planner.cli.options import Assignments
from planner.cli.output import show, write_whole
from planner.launch.importing import (
    Told,
    import_spec,
    read_launch,
    report,
    spec_text,
)

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Launch files, or a folder of them.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="Whose files they are; absent, they are recognised.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="SPEC", help="New job file.", show_default=False),
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="A preset or a config.json, where the files do not say.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str,
    typer.Option(
        "--cluster",
        metavar="NAME",
        help="A cluster, by name or file.",
        show_default=False,
    ),
]
Node = Annotated[
    str,
    typer.Option(
        "--node",
        metavar="NAME",
        help="A kind of node, in place of a cluster.",
        show_default=False,
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option("--nodes", min=1, metavar="N", help="How many.", show_default=False),
]


@guarded
def import_(
    files: Files,
    *,
    out: Out,
    target: Target = None,
    model: Model = "",
    cluster: Cluster = "",
    node: Node = "",
    nodes: Nodes = None,
    assignments: Assignments = None,
) -> None:
    """Read launch files into a job that `predict` and `explain` can judge.

    Args:
        files: Files or folders. [-]
        out: The job file. [-]
        target: Whose files they are. [text]
        model: Name or path of the model. [text]
        cluster: Name or path of the cluster. [text]
        node: Name of a node. [text]
        nodes: How many of it. [1]
        assignments: Fields to set. [text]
    """
    reading = read_launch(files, target)
    told = Told(model=model, cluster=cluster, node=node, nodes=nodes)
    fields = import_spec(reading, told, assignments or ())
    write_whole(out, spec_text(fields, reading).rstrip("\n"))
    show(Text(report(reading, fields, str(out))))

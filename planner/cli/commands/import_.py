"""`planner import`: launch files back into a spec with its layout."""

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from planner.cli.guard import guarded
from planner.cli.options import TO_PRICE, Assignments, TimeLimit
from planner.cli.output import show
from planner.cli.stopping import this_run
from planner.errors import BadInputError
from planner.launch.importing import (
    UserOverrides,
    import_spec,
    read_launch,
    refuse_unpriced,
    report,
    settled,
    spec_text,
)
from planner.questions.outputs.files import write_whole

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
On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="COUNTxGPU",
        help="GPUs, as 8x3090 or '2 nodes of 8 A100-40'; or a cluster.",
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


Environment = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME=VALUE",
        help="A variable that launch scripts use and do not set; repeatable.",
        show_default=False,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="NAME",
        help="A setting that planner does not understand and that changes neither "
        "layout, memory nor time; repeatable.",
        show_default=False,
    ),
]
_VARIABLE = re.compile(r"(\w+)=([^\x00-\x1f]*)", re.ASCII)
"""A variable, or the number of an argument, with a value of one line. [text]"""


def _variables(given: list[str]) -> dict[str, str]:
    """Variables by name."""
    found = {}
    for text in given:
        match = _VARIABLE.fullmatch(text)
        if match is None:
            raise BadInputError(
                "is no variable with a value of one line",
                field="--env",
                value=text,
                allowed="NAME=VALUE, such as GPUS_PER_NODE=8",
            )
        found[match.group(1)] = match.group(2)
    return found


@guarded
def import_(
    files: Files,
    *,
    out: Out,
    target: Target = None,
    model: Model = "",
    cluster: Cluster = "",
    on: On = "",
    node: Node = "",
    nodes: Nodes = None,
    assignments: Assignments = None,
    env: Environment = None,
    ignore: Ignore = None,
    time_limit: TimeLimit = TO_PRICE,
) -> None:
    """Read launch files into a job that `predict` and `explain` can judge.

    Args:
        files: Files or folders. [-]
        out: The job file. [-]
        target: Framework of the files; None to recognise it. [text]
        model: Name or path of the model. [text]
        cluster: Name or path of the cluster. [text]
        on: Count of GPUs. [text]
        node: Name of a node. [text]
        nodes: Number of nodes. [1]
        assignments: Fields to set. [text]
        env: Variables of launch scripts. [text]
        ignore: Settings to set aside. [text]
        time_limit: Longest time in all, from the start of the process. [s]
    """
    this_run().limited(time_limit)
    told = UserOverrides(
        model=model,
        cluster=cluster,
        on=on,
        node=node,
        nodes=nodes,
        ignore=tuple(ignore or ()),
    )
    reading = settled(read_launch(files, target, _variables(env or [])), told)
    fields = import_spec(reading, told, assignments or ())
    refuse_unpriced(fields, files)
    write_whole(out, spec_text(fields, reading).rstrip("\n"))
    show(Text(report(reading, fields, str(out))))

"""`planner emit`: a plan becomes a folder of launch files."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from planner.cli.guard import guarded
from planner.cli.output import show
from planner.launch import check_folder, read_plan, write_folder
from planner.launch import emit as launch_files

PlanPath = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN.json",
        help="A plan, or a result: then its first plan.",
        show_default=False,
    ),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="NAME",
        help="megatron, megatron-bridge, torchtitan, deepspeed, accelerate; slurm, "
        "torchrun or kubernetes start the plan's own framework.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="New folder.", show_default=False),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace a folder that holds a plan of ours.")
]


@guarded
def emit(plan: PlanPath, *, target: Target, out: Out, force: Force = False) -> None:
    """Write the launch files of a plan.

    Args:
        plan: JSON of a plan or of a result. [-]
        target: A framework, or what starts the plan's own. [text]
        out: The folder. [-]
        force: Replace what it holds. [-]
    """
    check_folder(out, force=force)
    files = launch_files(read_plan(plan), target)
    write_folder(out, files, force=force)
    lines = "\n".join(f"  {file.name}" for file in files)
    show(Text(f"{out}: {len(files)} files for {target}\n{lines}"))

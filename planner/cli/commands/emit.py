"""`planner emit`: a plan becomes a folder of launch files."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from planner.cli.guard import guarded
from planner.cli.options import TO_PRICE, Calibration, Hardware, TimeLimit
from planner.cli.output import show
from planner.cli.stopping import this_run
from planner.job.calibration_file import read_calibration
from planner.launch import check_folder, read_plan, write_folder
from planner.questions.emit import Emit
from planner.questions.inputs.overlay import catalog_with

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
        help="A name of `planner catalog targets`; slurm, torchrun or kubernetes start "
        "the plan's own framework.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="New folder.", show_default=False),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace a folder that holds a plan of ours; write a plan that does not "
        "fit the memory (refused with exit code 3 otherwise).",
    ),
]


@guarded
def emit(
    plan: PlanPath,
    *,
    target: Target,
    out: Out,
    force: Force = False,
    time_limit: TimeLimit = TO_PRICE,
    hardware: Hardware = None,
    calibration: Calibration = None,
) -> None:
    """Write the launch files of a plan, priced anew under the target's stack.

    Args:
        plan: JSON of a plan or of a result. [-]
        target: A framework, or a launcher of the plan's own framework. [text]
        out: The folder. [-]
        force: Replace a plan in the folder, and write a plan that does not fit. [-]
        time_limit: Longest time in all, from the start of the process. [s]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [-]
    """
    check_folder(out, force=force)
    catalog = catalog_with(hardware)
    own = None if calibration is None else read_calibration(calibration, catalog)
    with this_run().searching(time_limit):
        folder = Emit(read_plan(plan, catalog, own), target, force).answer()
    write_folder(out, folder.files, force=force)
    lines = [f"{out}: {len(folder.files)} files for {target}"]
    lines += [f"  {file.name}" for file in folder.files]
    show(Text("\n".join([*lines, *folder.remarks])))

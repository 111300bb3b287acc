"""`planner size`: the model that time or money trains best."""

from typing import Annotated

import typer
from rich.console import RenderableType

from planner.cli.guard import guarded
from planner.cli.options import (
    Assignments,
    Calibration,
    Hardware,
    JsonTo,
    TimeLimit,
)
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.progress import search_progress
from planner.cli.screens import LIMITS, SHOWN, Verbose, again
from planner.cli.stopping import MemoryLimit, this_run
from planner.document.screen import screen_of
from planner.document.terminal import report
from planner.job.calibration_file import read_calibration
from planner.planning.sizing.ask import asked
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.overlay import catalog_with
from planner.questions.size.search import Sized, SizeModel
from planner.report.sections.run import short
from planner.report.size import ENDING, size_document, with_plan

On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="COUNTxGPU",
        help="GPUs, as 512xh100 or '2 nodes of 8 A100-40 over 25 GbE'; or a cluster.",
        show_default=False,
    ),
]
Days = Annotated[
    float | None,
    typer.Option("--days", metavar="N", help="Longest run.", show_default=False),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="USD",
        help="Most money of the run, as 1e6 or '2 MUSD'.",
        show_default=False,
    ),
]
ServeTokens = Annotated[
    str | None,
    typer.Option(
        "--serve-tokens",
        metavar="N",
        help="Tokens to be served over the model's life, as 2T.",
        show_default=False,
    ),
]
LawName = Annotated[
    str | None,
    typer.Option(
        "--law",
        metavar="NAME",
        help="Law of the loss: besiroglu-2024 unless said, or hoffmann-2022.",
        show_default=False,
    ),
]
Framework = Annotated[
    str | None,
    typer.Option(
        "--framework",
        metavar="F",
        help="Framework, or any; that of pretraining unless said.",
        show_default=False,
    ),
]
Network = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="N",
        help="Network between nodes, as '25 GbE' or '4 x HDR'.",
        show_default=False,
    ),
]
NOT_OF_PLAN = frozenset({"days", "budget", "serve_tokens", "law"})
"""Options that `plan` lacks."""


@guarded
def size(
    *,
    context: typer.Context,
    on: On,
    days: Days = None,
    budget: Budget = None,
    serve_tokens: ServeTokens = None,
    law: LawName = None,
    framework: Framework = None,
    network: Network = None,
    assignments: Assignments = None,
    time_limit: TimeLimit = 120.0,
    memory_limit: MemoryLimit = MEMORY,
    hardware: Hardware = None,
    calibration: Calibration = None,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    verbose: Verbose = False,
) -> None:
    """Print the parameters and tokens that days or money train best.

    Args:
        context: Context of the command. [-]
        on: GPUs, or a cluster. [text]
        days: Longest run. [d]
        budget: Most money. [text]
        serve_tokens: Tokens to be served. [text]
        law: Law of the loss. [text]
        framework: Framework of the run. [text]
        network: Network between nodes. [text]
        assignments: Fields of the nearest model's job to replace. [text]
        time_limit: Longest time in all, from the start of the process. [s]
        memory_limit: Most memory of the process and its workers. [text]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [path]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        verbose: True to print the models that were planned on the way. [-]

    Raises:
        BadInputError: There is no limit, or a limit or a name is wrong.
        InfeasibleError: No model of the catalogue fits.
        TimeLimitError: The time ended before the first plan.
    """
    stop = this_run().limited(time_limit, memory_limit)
    check_writable(json=json_to, report=report_to)
    catalog = catalog_with(hardware)
    own = None if calibration is None else read_calibration(calibration, catalog)
    ask = asked(
        on,
        catalog,
        days=days,
        budget=budget,
        serve_tokens=serve_tokens,
        law=law,
        framework=framework,
        network=network,
        assignments=assignments or (),
        calibration=own,
        measured_in=str(calibration),
    )
    with search_progress() as told:
        found = SizeModel(ask).answer(stop, told)
    text = found.answer.model_dump_json(by_alias=True, indent=2)
    document = size_document(found.answer, found.flow.result, _next(context, found))
    shown: RenderableType = screen_of(document, ENDING)
    if verbose:
        shown = report(with_plan(document, found.flow.document()))
    deliver(shown, text, json_to)
    write_report(report_to, lambda: with_plan(document, found.flow.page(0.0)))


def _next(context: typer.Context, found: Sized) -> str:
    """The command that writes the launch files of the nearest model."""
    near, job = found.answer.nearest, found.flow.phases[0].job
    training = job.workloads[0].training
    words = ["--model", near.name, "--tokens", short(near.run.tokens)]
    words += ["--seq-len", str(training.seq_len)]
    words += ["--global-batch", str(training.sequences)]
    words += ["--framework", str(job.spec.framework), "--out", "run"]
    without = SHOWN | LIMITS | NOT_OF_PLAN | {"framework"}
    return f"{again(context, 'plan', without, *words)}  # writes launch files"

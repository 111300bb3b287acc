"""`planner tune`: short measured runs of the plans that tie, until one has won."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from planner.cli.guard import guarded
from planner.cli.options import JsonTo, TimeLimit
from planner.cli.output import check_new, check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.progress import search_progress
from planner.cli.sources import Source, sourced
from planner.cli.stopping import MemoryLimit, this_run
from planner.document.screen import screen_of
from planner.errors import BadInputError
from planner.questions.inputs.limits import MEMORY
from planner.questions.tune.flow import BUDGET, TOP, begun, continued
from planner.report.tuning import ENDING, tuning_document
from planner.search.stop import Stop
from planner.specs.answer.tuning import Tuning

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="New folder for the runs; without it SPEC is such a folder.",
        show_default=False,
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=1,
        metavar="N",
        help=f"Most plans of a search that become runs; {TOP} unless given.",
        show_default=False,
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(
        "--runs",
        min=1,
        metavar="N",
        help=f"Most runs to measure; {BUDGET} unless given.",
        show_default=False,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print the name of the run to make alone; nothing once it is settled.",
    ),
]
OPTIONS = {"assignments": "set", "family": "as"}
"""Fields of a source whose option has another name. [text]"""


@guarded
@sourced
def tune(
    source: Source,
    *,
    out: Out = None,
    top: Top = None,
    runs: Runs = None,
    time_limit: TimeLimit = 120.0,
    memory_limit: MemoryLimit = MEMORY,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    quiet: Quiet = False,
) -> None:
    """Write short runs of the tied plans of a job; or read their logs and go on.

    Args:
        source: The job, or a folder that an earlier call wrote. [-]
        out: New folder for the runs. [path]
        top: Most runs to write. [1]
        runs: Most runs to measure. [1]
        time_limit: Longest time in all, from the start of the process. [s]
        memory_limit: Most memory of the process and its workers. [text]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        quiet: True to print the name of the next run alone. [-]

    Raises:
        BadInputError: A file, a field or a name is wrong, or a log is foreign.
        InfeasibleError: The job fits nowhere.
        TimeLimitError: The time ended before the first plan.
        UnsupportedPlanError: No launch files can be written of the plans.
    """
    stop = this_run().limited(time_limit, memory_limit)
    check_writable(json=json_to, report=report_to)
    if out is None:
        answer = _continued(_folder(source), top, runs, stop)
    else:
        check_new(out)
        answer = _begun(source, out, top or TOP, runs or BUDGET, stop)
    document = tuning_document(answer)
    shown = Text(answer.next or "") if quiet else screen_of(document, ENDING)
    deliver(shown, answer.model_dump_json(by_alias=True, indent=2), json_to)
    write_report(report_to, lambda: document)


def _begun(source: Source, out: Path, top: int, runs: int, stop: Stop) -> Tuning:
    job = source.read().job()
    with search_progress() as told:
        return begun(
            job,
            out,
            top=top,
            budget=runs,
            hardware=source.hardware,
            stop=stop,
            told=told,
        )


def _continued(folder: Path, top: int | None, runs: int | None, stop: Stop) -> Tuning:
    with search_progress() as told:
        return continued(folder, top=top, budget=runs, stop=stop, told=told)


def _folder(source: Source) -> Path:
    """The folder to go on in; refuse a job, and what only a job takes."""
    if source.spec is None or not source.spec.is_dir():
        raise BadInputError(
            "a job needs a new folder for its runs",
            field="--out",
            allowed="SPEC --out DIR, or the DIR of an earlier call alone",
        )
    for field in fields(source):
        if field.name != "spec" and getattr(source, field.name):
            raise BadInputError(
                "does not apply: the folder keeps the job as it was given",
                field=f"--{OPTIONS.get(field.name, field.name).replace('_', '-')}",
            )
    return source.spec

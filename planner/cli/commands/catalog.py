"""`planner catalog`: what is known, with sources."""

import json
from typing import Annotated

import typer
from rich.console import RenderableType

from planner.cli.guard import guarded
from planner.cli.options import TO_PRICE, Hardware, JsonTo, TimeLimit
from planner.cli.output import deliver
from planner.cli.stopping import this_run
from planner.document.terminal import report
from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED, Catalog
from planner.questions.inputs.overlay import catalog_with
from planner.report.catalog import (
    KINDS,
    catalog_data,
    entry_table,
    kind_names,
    kind_table,
    overview,
)
from planner.report.catalog.check import check_data, check_document


def _complete_kind(incomplete: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def _complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    kind = ctx.params.get("kind")
    names = kind_names(kind, SHIPPED) if kind in KINDS else ()
    return [name for name in names if name.startswith(incomplete)]


Kind = Annotated[
    str | None,
    typer.Argument(
        metavar=f"[{'|'.join(KINDS)}]",
        help="What to list; without it, the names of everything.",
        autocompletion=_complete_kind,
        show_default=False,
    ),
]
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="One of them, with the source of each number.",
        autocompletion=_complete_name,
        show_default=False,
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Hold numbers against each other and prices against their quotes; "
        "exit 2 where one deviates without a reason.",
    ),
]


@guarded
def catalog(
    kind: Kind = None,
    name: Name = None,
    json_to: JsonTo = None,
    hardware: Hardware = None,
    check: Check = False,
    time_limit: TimeLimit = TO_PRICE,
) -> None:
    """Print what is known: everything, a kind, or one entry with its sources.

    Args:
        kind: Kind to list. [-]
        name: Name of an entry. [-]
        json_to: File for JSON, or `-` for stdout. [-]
        hardware: Folder of hardware laid over ours. [-]
        check: Check the whole catalog in place of listing it. [-]
        time_limit: Longest time in all, from the start of the process. [s]
    """
    this_run().limited(time_limit)
    known = catalog_with(hardware)
    if check:
        _check(kind, json_to, known)
        return
    data = catalog_data(kind, name, known)
    deliver(
        _report(kind, name, known), json.dumps(data, indent=2, default=str), json_to
    )


def _check(kind: str | None, json_to: str | None, known: Catalog) -> None:
    """Print what deviates; exit 2 where something does without a reason."""
    if kind is not None:
        raise BadInputError(
            "goes with no kind", field="--check", value=kind, allowed="--check alone"
        )
    document, sound = check_document(known)
    deliver(report(document), json.dumps(check_data(known), indent=2), json_to)
    if not sound:
        raise typer.Exit(BadInputError.exit_code)


def _report(kind: str | None, name: str | None, known: Catalog) -> RenderableType:
    if kind is None:
        return overview(known)
    return kind_table(kind, known) if name is None else entry_table(kind, name, known)

"""Output of reports and JSON to stdout or files."""

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from planner.errors import BadInputError
from planner.hardware.reading.documents import CIRCLE, absence, is_folder, is_there
from planner.hardware.reading.escape import shown
from planner.questions.outputs.files import write_whole

MOST_NAME = 200
"""Longest file name that leaves room for the name of a scratch file. [B]"""
PLAIN_WIDTH = 100
"""Columns of a report that goes to a file or a pipe. [1]"""


class _Console(Console):
    """A console on which text of a user moves nothing: only rich itself does."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Segments of a report, characters that are not shown spelt out."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(shown(text, keep="\n"), style)


def show(report: RenderableType) -> None:
    """Print a report on stdout; plain and 100 columns wide if that is no terminal."""
    if isinstance(report, str):
        if report:
            _say(report)
        return
    terminal = sys.stdout.isatty()
    width = None if terminal else PLAIN_WIDTH
    console = _Console(width=width, markup=False, highlight=False, emoji=False)
    if terminal:
        console.print(report)
        return
    with console.capture() as capture:
        console.print(report)
    # Cells are padded; in a file that is only noise at the ends of lines.
    _say("\n".join(line.rstrip() for line in capture.get().splitlines()))


def deliver(report: RenderableType, json_text: str, json_to: str | None) -> None:
    """Print the report, or the JSON, and write the JSON to a file.

    Args:
        report: Report for people. [-]
        json_text: JSON for programs. [-]
        json_to: A path, `-` for JSON on stdout in place of the report, or None. [-]
    """
    if json_to == "-":
        _say(json_text)
        return
    try:
        show(report)
    finally:
        if json_to is not None:
            write_whole(Path(json_to), json_text)


def _say(text: str) -> None:
    """Print on stdout; a reader that has gone is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        discard_stdout()


def discard_stdout() -> None:
    """Let further output go nowhere: nobody reads it, or nothing takes it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def check_new(folder: Path) -> None:
    """Refuse an output folder that is not new and empty.

    Raises:
        BadInputError: The folder is a file, is not empty, or cannot be written.
    """
    if is_folder(folder) and any(folder.iterdir()):
        raise _no_new_folder("is not empty", folder)
    if is_there(folder) and not folder.is_dir():
        raise _no_new_folder("is no folder", folder)
    if reason := _obstacle_beside(folder):
        raise BadInputError(
            f"cannot be written: {reason}",
            file=str(folder),
            field="--out",
            allowed="a folder in one that takes new files",
        )


def _no_new_folder(what: str, folder: Path) -> BadInputError:
    where, allowed = str(folder), "a new folder"
    return BadInputError(what, file=where, field="--out", allowed=allowed)


def check_writable(**options: Path | str | None) -> None:
    """Refuse a file that cannot be written, before anything is worked out.

    Args:
        options: Name of an option to the file it is given; None and `-` are no file.
            [path]

    Raises:
        BadInputError: A folder is in the place of a file, a folder takes no new file,
            or two outputs go to one file.
    """
    files = {name: Path(to) for name, to in options.items() if to not in (None, "-")}
    for option, path in files.items():
        if reason := _obstacle(path):
            raise BadInputError(
                f"cannot be written: {reason}",
                file=str(path),
                field=f"--{option}",
                allowed="a file in a folder that takes new files",
            )
    # A device takes as many outputs as there are.
    new = (path for path in files.values() if path.is_file() or not path.exists())
    given = [os.path.realpath(path) for path in new]
    if len(set(given)) < len(given):
        raise BadInputError(
            "two outputs cannot go to one file",
            field=" and ".join(f"--{name}" for name in files),
            value=given[0],
        )


def _obstacle(path: Path) -> str:
    """Reason why a file cannot be written; empty where it can."""
    if is_folder(path):
        return "it is a folder"
    if is_there(path) and not path.is_file():
        return "" if os.access(path, os.W_OK) else "no permission"
    return _obstacle_beside(path)


def _obstacle_beside(path: Path) -> str:
    """Reason why no new file or folder can be written at a path; empty if it can."""
    folder = path.parent
    try:
        while not is_there(folder) and folder != folder.parent:
            if absence(folder) == CIRCLE:
                return f"{folder}: {CIRCLE}"
            folder = folder.parent
        if not is_folder(folder):
            return f"{folder} is no folder"
        if len(os.fsencode(path.name)) > MOST_NAME:
            return "its name is too long"
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder}: {error.strerror or error}"

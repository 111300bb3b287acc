"""Where output goes: reports and JSON to stdout or files."""

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from hardware.documents import is_folder, is_there
from planner.errors import BadInputError
from planner.specs.escape import shown

PLAIN_WIDTH = 100
"""Columns of a report that goes to a file or a pipe. [1]"""


class _Console(Console):
    """A console on which text of a user moves nothing: only rich itself does."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Segments of a report, characters that are not shown spelt out.

        Args:
            renderable: What to print. [-]
            options: Of rich. [-]

        Yields:
            Segments. [-]
        """
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(shown(text, keep="\n"), style)


def show(report: RenderableType) -> None:
    """Print a report on stdout; plain and 100 columns wide if that is no terminal.

    Args:
        report: What to print. [-]
    """
    terminal = sys.stdout.isatty()
    width = None if terminal else PLAIN_WIDTH
    console = _Console(width=width, markup=False, highlight=False, emoji=False)
    if terminal:
        console.print(report)
        return
    with console.capture() as capture:
        console.print(report)
    # Cells are padded; in a file that is only noise at the ends of lines.
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def deliver(report: RenderableType, json_text: str, json_to: str | None) -> None:
    """Print the report, or its JSON, and write the JSON to its file.

    Args:
        report: For people. [-]
        json_text: For programs. [-]
        json_to: A path, `-` for JSON on stdout in place of the report, or None. [-]

    Raises:
        BadInputError: The file cannot be written.
    """
    if json_to == "-":
        print(json_text)
        return
    if json_to is not None:
        write_whole(Path(json_to), json_text)
    show(report)


def check_new(folder: Path) -> None:
    """Refuse an output folder that would mix with what is there.

    Args:
        folder: Where output is to go. [-]

    Raises:
        BadInputError: It is a file, or it holds something.
    """
    if is_folder(folder) and any(folder.iterdir()):
        raise BadInputError("is not empty", file=str(folder), allowed="a new folder")
    if is_there(folder) and not folder.is_dir():
        raise BadInputError("is no folder", file=str(folder), allowed="a new folder")


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all.

    Args:
        path: The file; its folder is made if absent. [-]
        text: What it is to hold, without the last newline. [text]

    Raises:
        BadInputError: It cannot be written.
    """
    try:
        if is_there(path) and not path.is_file():
            # A pipe or a device is written to; renaming would replace it.
            path.write_text(text + "\n", encoding="utf-8")
        else:
            _replace(path, text + "\n")
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"cannot be written: {reason}", file=str(path)) from error


def _replace(path: Path, text: str) -> None:
    """Write beside the file, then rename over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as scratch:
        temporary = Path(scratch.name)
        scratch.write(text)
    try:
        # A temporary file is private; a result is as readable as any new file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

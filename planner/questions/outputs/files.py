"""Files of answers, written whole or not at all."""

import os
import tempfile
from pathlib import Path

from planner.errors import BadInputError
from planner.hardware.reading.documents import is_there


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Args:
        path: The file; an absent folder is made. [-]
        text: Content of the file, without the last newline. [text]

    Raises:
        BadInputError: The file cannot be written.
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
    """Write beside the file, then rename over it; nothing else is left behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as scratch:
            scratch.write(text)
        # A temporary file is private; a result is as readable as any new file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

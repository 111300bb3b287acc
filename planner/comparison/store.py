"""Finished candidates on disk: files named by what was asked, there whole or not."""

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from planner import __version__
from planner.errors import BadInputError

DIGITS = 32
"""Length of a file's name. [1]"""


def key_of(question: Mapping[str, object]) -> str:
    """The name of the answer to a question.

    SHA-256 of the version of planner and the question as JSON with sorted keys, so
    that any change of either asks again.

    Args:
        question: Everything that the answer depends on, ready for JSON. [-]

    Returns:
        Hexadecimal digits. [text]
    """
    told = {"planner": __version__, "question": question}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


class Store:
    """A folder of answers; without a folder it keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            self._make(folder)

    @staticmethod
    def _make(folder: Path) -> None:
        """Refuse a folder that cannot be written before any work is done."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            reason = error.strerror or str(error)
            raise BadInputError(
                f"cannot be written: {reason}", file=str(folder), field="--resume"
            ) from error

    def read(self, key: str) -> str | None:
        """An answer that was kept.

        Args:
            key: Its name. [text]

        Returns:
            Its text; none where it is not there. [text]
        """
        if self.folder is None:
            return None
        try:
            return (self.folder / f"{key}.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def keep(self, key: str, text: str) -> None:
        """Write an answer beside its place, then rename it there.

        Args:
            key: Its name. [text]
            text: The answer. [text]

        Raises:
            BadInputError: The folder cannot be written any more.
        """
        if self.folder is None:
            return
        path = self.folder / f"{key}.json"
        try:
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=self.folder, prefix=".", delete=False
            ) as scratch:
                scratch.write(text)
            Path(scratch.name).replace(path)
        except OSError as error:
            reason = error.strerror or str(error)
            raise BadInputError(
                f"cannot be written: {reason}", file=str(path)
            ) from error

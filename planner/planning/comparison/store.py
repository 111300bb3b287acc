"""Finished candidates on disk: files named by the question, there whole or not."""

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from planner import __version__
from planner.errors import BadInputError

ANSWER = ',"answer":'
"""Between the digest and the text of a kept answer. [text]"""
DIGITS = 32
"""Length of a file's name. [1]"""


def key_of(question: Mapping[str, object]) -> str:
    """The name of the answer to a question.

    SHA-256 of the version of planner and the question as JSON with sorted keys. Any
    change of either asks again.
    """
    told = {"planner": __version__, "question": question}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _sealed(key: str, text: str) -> str:
    """An answer with a digest of the answer and its name, as JSON."""
    digest = hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()
    return f'{{"sha256":"{digest}"{ANSWER}{text}}}'


def _write(path: Path, text: str) -> None:
    """Write beside a file's place and rename; nothing stays where that fails."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=".", delete=False
    ) as scratch:
        written = Path(scratch.name)
        try:
            scratch.write(text)
            scratch.flush()
            written.replace(path)
        finally:
            written.unlink(missing_ok=True)


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
        """Text of an answer that was kept.

        Returns:
            The text; None where the file is absent, or not as it was written. [text]
        """
        if self.folder is None:
            return None
        try:
            held = (self.folder / f"{key}.json").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        head, answer, _ = held.partition(ANSWER)
        text = answer and held[len(head + answer) : -1]
        return text if text and held == _sealed(key, text) else None

    def keep(self, key: str, text: str) -> None:
        """Write an answer beside its place, then rename it there.

        A folder in the file's place stays: the answer is then made again.

        Raises:
            BadInputError: The folder cannot be written any more.
        """
        if self.folder is None:
            return
        path = self.folder / f"{key}.json"
        if path.is_dir():
            return
        try:
            _write(path, _sealed(key, text))
        except OSError as error:
            reason = error.strerror or str(error)
            raise BadInputError(
                f"cannot be written: {reason}", file=str(path)
            ) from error

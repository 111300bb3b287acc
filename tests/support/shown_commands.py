"""Commands that the documentation shows, with their outputs, read from its pages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(
    r"(?:<!-- (?P<mark>(?:not )?run[^\n]*) -->\n)?"
    r"^(?P<ticks>`{3,})(?P<language>\w*)[^\n`]*\n(?P<text>.*?)^(?P=ticks)$",
    flags=re.DOTALL | re.MULTILINE,
)
"""A fenced block, and the comment that says how a test treats the block."""
SECONDS = re.compile(r"\b(solved|gap [\d.%]+|fits), [\d.]+ s\b")
"""Wall time of a search, the one number that differs from run to run."""


@dataclass(frozen=True)
class Shown:
    """A fenced block of a page."""

    page: str
    line: int
    mark: str
    language: str
    text: str

    @property
    def runs(self) -> bool:
        """True where the block is run as it stands."""
        shell = self.language == "console"
        return shell and (not self.mark or self.mark.startswith("run:"))

    @property
    def slow(self) -> bool:
        """True where the block runs under the mark `slow` alone."""
        return "slow" in self.mark

    @property
    def exit_code(self) -> int:
        """Exit code of the last command. [1]."""
        found = re.search(r"exit (\d+)", self.mark)
        return int(found[1]) if found else 0

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Every line behind a dollar sign, and the text below the line. [text]."""
        return re.findall(
            r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", self.text, flags=re.MULTILINE
        )


def blocks(page: Path) -> Iterator[Shown]:
    """Fenced blocks of a page."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("ticks")) + 1
        name = str(page.relative_to(ROOT))
        mark = found["mark"] or ""
        yield Shown(name, line, mark, found["language"], found["text"])


def folded(text: str) -> str:
    """White space folded and the seconds of searches left out."""
    return SECONDS.sub(r"\1", " ".join(text.split()))


def shows(shown: str, printed: str) -> bool:
    """True where the printed text is what is shown; `...` stands for any text."""
    pieces = re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)
    pattern = ".*".join(re.escape(folded(piece)) for piece in pieces)
    return re.fullmatch(pattern, f"{folded(printed)}") is not None

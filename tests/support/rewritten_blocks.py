"""Outputs that the documentation shows, written anew as the commands print them now."""

import re
from difflib import SequenceMatcher
from itertools import pairwise

from shown_commands import ROOT, Shown, shows

GAP = "..."
"""Line that stands for any text. [text]"""


def bare(line: str) -> str:
    """A line without its digits and spaces: numbers move, words stay."""
    return re.sub(r"[\d.,\s]+", "", line)


def places(shown: list[str], printed: list[str]) -> dict[int, int]:
    """Index of a printed line by index of the shown line that it stands for."""
    matcher = SequenceMatcher(
        None,
        [bare(line) for line in shown],
        [bare(line) for line in printed],
        autojunk=False,
    )
    found: dict[int, int] = {}
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal" or (tag == "replace" and end - start == last - first):
            found |= dict(zip(range(start, end), range(first, last), strict=True))
    return found


def pieces(shown: list[str]) -> list[tuple[int, int]]:
    """First and last index of every run of lines between gaps."""
    stops = [-1, *(i for i, line in enumerate(shown) if line == GAP), len(shown)]
    return [
        (start + 1, stop - 1) for start, stop in pairwise(stops) if stop - start > 1
    ]


def output(shown: str, printed: str) -> str:
    """Printed text with the gaps of the text that is shown today.

    Args:
        shown: Lines below a command of a page. [text]
        printed: What the command prints now. [text]

    Returns:
        Lines for the page; an end of a piece that has gone stays as it is. [text]
    """
    before = shown.splitlines()
    now = [line.rstrip() for line in printed.rstrip("\n").splitlines()]
    if not before:
        return ""
    if GAP not in before:
        return "".join(f"{line}\n" for line in now)
    at = places(before, now)
    lines = [GAP] if before[0] == GAP else []
    for start, stop in pieces(before):
        whole = start in at and stop in at
        lines += now[at[start] : at[stop] + 1] if whole else before[start : stop + 1]
        lines.append(GAP)
    if before[-1] != GAP:
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


def rewrite(block: Shown, printed: list[str]) -> None:
    """Write a block of a page anew.

    Args:
        block: The block as the page has it. [-]
        printed: What its commands print now, in their order. [text]
    """
    text = block.text
    for (command, shown), now in zip(block.commands, printed, strict=True):
        if not shows(shown, now):
            new = f"$ {command}\n{output(shown, now)}"
            text = text.replace(f"$ {command}\n{shown}", new, 1)
    page = ROOT / block.page
    page.write_text(page.read_text().replace(block.text, text, 1))

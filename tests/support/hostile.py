"""Files with something wrong in them, and what has to hold of every answer to them."""

import contextlib
import copy
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st
from typer.testing import CliRunner

from planner.cli import app
from planner.hardware.reading.characters import is_strange

CODES = frozenset({0, 2, 3, 4, 5})
OWNED = "owned"
"""The file that a payload makes where it is run."""
PAYLOADS = (
    "x\ntouch owned\n",
    "x\n#SBATCH --wrap=touch",
    "$(touch owned)",
    "`touch owned`",
    "'; touch owned; '",
    '"; touch owned; "',
    "x\nsearch: {tp: 1}",
    "<script>owned()</script>",
    '"><img src=x onerror=owned()>',
    "\x1b]0;owned\x07",
    "\x1b[31mowned",
    "\u202edenwo",
    "a\0b",
    "../../owned",
    "-rf",
    "{{ 7 * 7 }}",
    "x" * 5000,
)
LIVE = ("<script>owned", "<img src=x onerror", "\x1b[31m", "\x1b]0;", "\u202e")
WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**31, 2**63, 10**18, 10**40, -(10**40)),
    *(float("nan"), float("inf"), float("-inf"), 1e308, 1e-308),
    *("", " ", "x", "no-such-name", "1 GB", "nan", "80 GB", "-5 d"),
    "\N{FULLWIDTH DIGIT ONE}",
    *([], {}, [None], [[[]]], [-1], [{}], {"x": 1}, ["x"] * 500),
    *PAYLOADS,
)
"""Values that stand where others belong."""
TEXT = (
    *("", "null", "5", "[]", "{}", "- x", "[" * 5000, '{"a":' * 5000, "\0", "a: *b"),
    *("a: &a [*a]", "!!python/name:os.system", "2001-99-99", "9" * 5000, "a\tb: c"),
)
"""What stands in place of a whole file."""


@dataclass(frozen=True)
class Answer:
    """What a command did with files: its code, its output, and what it left."""

    code: int
    out: str
    err: str
    left: Mapping[str, bytes]


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values inside nested data."""
    pairs = data.items() if isinstance(data, dict) else ()
    for key, value in pairs or (enumerate(data) if isinstance(data, list) else ()):
        yield (*at, key)
        yield from places(value, (*at, key))


@st.composite
def mutated(draw: st.DrawFn, data: Any) -> Any:
    """Data with a wrong value, or with a key that is gone, misspelt or unknown."""
    data = copy.deepcopy(data)
    path = draw(st.sampled_from(list(places(data))))
    owner, key = data, path[-1]
    for part in path[:-1]:
        owner = owner[part]
    how = draw(st.sampled_from(("value", "value", "value", "gone", "key")))
    if how == "gone" and isinstance(owner, dict):
        del owner[key]
    elif how == "key" and isinstance(owner, dict):
        word = str(key)
        new = draw(st.sampled_from((word[1:] + word[:1], "owned", *PAYLOADS)))
        owner[new] = owner.pop(key)
    else:
        owner[key] = copy.deepcopy(draw(st.sampled_from(WRONG)))
    return data


@st.composite
def broken(draw: st.DrawFn, text: str) -> bytes:
    """Text that is cut, has a line twice, not at all or behind a tab, or odd bytes."""
    raw = text.encode()
    lines = raw.splitlines(keepends=True) or [b"\n"]
    at = draw(st.integers(0, len(lines) - 1))
    cut = draw(st.integers(0, len(raw)))
    return draw(
        st.sampled_from(
            (
                raw[:cut],
                raw[:cut] + b"\xff" + raw[cut:],
                raw[:cut] + b"\0" + raw[cut:],
                b"".join([*lines[:at], *lines[at + 1 :]]),
                b"".join([*lines[:at], lines[at], *lines[at:]]),
                b"".join([*lines[:at], b"\t", *lines[at:]]),
                b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"),
                *(word.encode() for word in TEXT),
                *(re.sub(rb"\d+", n, raw) for n in (b"-1", b"0", b"9" * 30, b"nan")),
            )
        )
    )


def as_yaml(data: Any) -> bytes:
    return yaml.safe_dump(data, allow_unicode=True, sort_keys=False).encode()


def as_json(data: Any) -> bytes:
    return json.dumps(data).encode()


def answered(arguments: Sequence[str], files: Mapping[str, bytes]) -> Answer:
    """Call the command in a folder of its own that holds files."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        for file, content in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        done = CliRunner().invoke(app, list(arguments))
        assert done.exception is None or isinstance(done.exception, SystemExit)
        left = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and str(path.relative_to(folder)) not in files
        }
    return Answer(done.exit_code, done.stdout, done.stderr, left)


def check(answer: Answer, files: Mapping[str, bytes], *mentions: str) -> None:
    """What holds of every answer, whatever the files say.

    Args:
        answer: Of the command.
        files: What it was given, by name.
        mentions: Further words of which a refusal may have one.
    """
    assert answer.code in CODES, answer.err
    assert "Traceback" not in answer.err
    if answer.code == 2:
        _check_refusal(answer, [*files, "--set", "--layout", "--model", *mentions])
    for name, content in answer.left.items():
        text = content.decode()
        assert not Path(name).name.startswith("."), f"scratch is left: {name}"
        assert name != OWNED
        if name.endswith(".json"):
            json.loads(text, parse_constant=_refuse)
        if name.endswith((".html", ".md")):
            assert not [live for live in LIVE if live in text], name
    shown = answer.out + answer.err
    assert not [c for c in set(shown) if is_strange(c) and c != "\n"]


def _check_refusal(answer: Answer, named: Sequence[str]) -> None:
    """One line that says where, and nothing written."""
    line = answer.err.strip()
    assert line.startswith("error: "), line
    assert len(line.splitlines()) == 1, line
    assert any(word in line for word in named), line
    assert len(line) < 1500, line
    assert answer.left == {}
    assert answer.out == ""


def _refuse(word: str) -> Callable[[], None]:
    raise ValueError(f"{word} is no JSON")

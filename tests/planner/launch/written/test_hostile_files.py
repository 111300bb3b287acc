"""Launch files that are broken anywhere are refused or read, never a traceback."""

import json
import random
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from examples import examples
from golden_folders import ROOT, emitted
from hostile import mutated
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import BadInputError
from planner.launch.importing import (
    UserOverrides,
    import_spec,
    read_texts,
    report,
    spec_text,
)
from planner.launch.registry import TARGETS

FOLDERS = sorted(
    path.parent
    for target in TARGETS
    for path in (ROOT / target.name).glob("*/plan.json")
)
LEFT_OUT = ("plan.json", "README.md", "check.sh")
CLUSTER = "dgx-h100-4-nodes"
WORDS = (
    "0",
    "-1",
    "1.5",
    ".inf",
    ".nan",
    "1e400",
    "9" * 30,
    "abc",
    "null",
    "true",
    "''",
    "[]",
    "[1, x]",
    "{}",
    "{a: 1}",
    "$UNSET",
)
"""What may stand where something else is meant."""


@cache
def folder_texts(folder: Path) -> dict[str, str]:
    """Files that `planner import` sees of a folder."""
    files = emitted(folder.parent.name, folder.name)
    return {name: files[name] for name in sorted(files) if name not in LEFT_OUT}


def broken(text: str, rng: random.Random) -> str:
    """The same with a word replaced, a line gone or doubled, or its end cut off."""
    kind = rng.choice(("word", "word", "word", "line", "twice", "cut"))
    if kind == "cut":
        return text[: rng.randrange(len(text) + 1)]
    if kind == "word":
        words = [m.span() for m in re.finditer(r"[\w.+|*-]+", text)]
        start, stop = rng.choice(words)
        return text[:start] + rng.choice(WORDS) + text[stop:]
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return "".join(
        [*lines[:at], *([lines[at]] * 2 * (kind == "twice")), *lines[at + 1 :]]
    )


@cache
def model_of(folder: Path) -> str:
    """The preset that a folder trains."""
    return str(json.loads((folder / "plan.json").read_text())["spec"]["model"]["name"])


def read_as_a_user_does(files: dict[str, str], model: str) -> str:
    """Down to the job that is written, and what is said of it."""
    reading = read_texts(files, None, "folder")
    told = UserOverrides(
        model="" if reading.model else model,
        node="dgx-h100",
        nodes=None if reading.gpus else 4,
    )
    fields = import_spec(reading, told, ("training.seq_len=4096",))
    return spec_text(fields, reading) + report(reading, fields, "job.yaml")


@pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}"
)
@settings(max_examples=examples(12))
@given(seed=st.integers(0, 2**32))
def test_a_broken_file_is_read_or_refused(folder: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    files = dict(folder_texts(folder))
    name = rng.choice(sorted(n for n, text in files.items() if text.strip()))
    for _ in range(rng.choice((1, 1, 2))):
        files[name] = broken(files[name], rng) or "\n"
    try:
        assert read_as_a_user_does(files, model_of(folder))
    except BadInputError as error:
        assert str(error)  # noqa: PT017


PARSERS = {
    ".json": (json.loads, json.dumps),
    ".yaml": (yaml.safe_load, yaml.safe_dump),
}
SETTINGS = [
    (folder, name)
    for folder in FOLDERS
    for name, text in folder_texts(folder).items()
    if Path(name).suffix in PARSERS
    and isinstance(PARSERS[Path(name).suffix][0](text), dict)
]
NEWLINE = "x\nsearch: {tp: 1}\n#"


@settings(max_examples=examples(60))
@given(st.sampled_from(SETTINGS), st.data())
def test_what_a_file_says_becomes_no_line_of_the_job(
    place: tuple[Path, str], draw: st.DataObject
) -> None:
    """What is written is what was checked; all else is comment, key by key."""
    folder, name = place
    files = dict(folder_texts(folder))
    load, dump = PARSERS[Path(name).suffix]
    content = draw.draw(mutated(load(files[name])))
    if draw.draw(st.booleans()):
        content[NEWLINE] = NEWLINE
    files[name] = dump(content)
    try:
        reading = read_texts(files, None, "folder")
        model = "" if reading.model else "llama-3.1-8b"
        told = UserOverrides(model=model, cluster=CLUSTER)
        fields = import_spec(reading, told, ("training.seq_len=4096",))
    except BadInputError as error:
        assert str(error).splitlines() == [str(error)]  # noqa: PT017
        return
    written = spec_text(fields, reading)
    assert yaml.safe_load(written) == yaml.safe_load(yaml.safe_dump(fields))
    shown = report(reading, fields, "job.yaml").splitlines()
    assert not [line for line in shown if line.startswith("search:")]


def test_a_key_with_a_newline_stays_a_comment() -> None:
    folder = next(f for f in FOLDERS if f.parent.name == "deepspeed")
    files, name = dict(folder_texts(folder)), "ds_config.json"
    files[name] = json.dumps({**json.loads(files[name]), NEWLINE: 1})
    written = read_as_a_user_does(files, model_of(folder))
    assert "search: {tp: 1}" in written
    lines = [line for line in written.splitlines() if "search: {tp: 1}" in line]
    assert all(line.startswith(("#", " ")) for line in lines), lines


def test_shell_variables_that_fill_each_other_without_end_are_refused() -> None:
    names = "ABCDEFGHIJ"
    lines = [f"{a}={f'${b}' * 40}" for a, b in pairwise(names)]
    text = "\n".join([*lines, "J=x", "python pretrain_gpt.py --num-layers $A"])
    for script in (text, 'A=("$B")\nB=("$A")\npython pretrain_gpt.py "${A[@]}"'):
        try:
            read_texts({"train.sh": script}, "megatron", "train.sh")
        except BadInputError as error:
            assert "train.sh" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_a_whole_folder_is_read(folder: Path) -> None:
    """What is not broken is not refused, so that the test above can fail."""
    assert folder.parent.name in read_as_a_user_does(
        folder_texts(folder), model_of(folder)
    )

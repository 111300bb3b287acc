"""A file of a user is plain data, or is refused with the field."""

import copy
import json
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.hardware.reading.documents import (
    LARGEST_FILE,
    LARGEST_NUMBER,
    DocumentError,
    beside,
    is_file,
    is_folder,
    is_there,
    plain,
    plain_json,
    plain_yaml,
    read_text,
    yaml_files,
)

KEYS = st.text("abcxyz_.", min_size=1, max_size=6)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_NUMBER, LARGEST_NUMBER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("abc é漢\n\t'\"$", max_size=8)
)
PLAIN = st.recursive(
    SCALARS,
    lambda inside: (
        st.lists(inside, max_size=4) | st.dictionaries(KEYS, inside, max_size=4)
    ),
    max_leaves=12,
)
BAD = {
    "a number beyond 64 bits": 1 << 63,
    "a negative one": -(10**40),
    "NaN": math.nan,
    "infinity": -math.inf,
    "a control character": "a\x1b[2Jb",
    "a null": "a\0b",
    "a mark of direction": "\u202eevil",
    "half a pair": "\ud800",
    "bytes": b"abc",
    "a set": {1, 2},
    "a date": date(2026, 1, 1),
}


def places(data: Any, at: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Paths of all values inside nested data."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*at, key)
            yield from places(value, (*at, key))
    if isinstance(data, list):
        for place, value in enumerate(data):
            yield (*at, place)
            yield from places(value, (*at, place))


@given(PLAIN)
def test_plain_data_are_read_as_they_are(data: object) -> None:
    assert plain(data) is data
    assert plain_json(json.dumps(data)) == data
    assert plain_yaml(yaml.safe_dump(data)) == data


@given(st.dictionaries(KEYS, PLAIN, min_size=1), st.sampled_from(list(BAD)), st.data())
def test_what_is_not_plain_is_refused_where_it_stands(
    data: dict[str, Any], kind: str, draw: st.DataObject
) -> None:
    data = copy.deepcopy(data)
    path = draw.draw(st.sampled_from(list(places(data))))
    owner: Any = data
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = BAD[kind]
    with pytest.raises(DocumentError) as refused:
        plain(data)
    assert refused.value.field == ".".join(map(str, path))
    assert refused.value.problem
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("key", ["x\nsearch: 1", "a\tb", "\x1b[2J", "\u202e"])
def test_a_key_is_one_line(key: str) -> None:
    with pytest.raises(DocumentError, match="one line") as refused:
        plain({"a": [{key: 1}]})
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "- " * 100_000])
def test_endless_nesting_is_refused(text: str) -> None:
    for read in (plain_json, plain_yaml):
        with pytest.raises((DocumentError, yaml.YAMLError)):
            read(text)


def test_a_hundred_levels_are_refused_and_ten_are_not() -> None:
    data: object = 1
    for _ in range(10):
        data = {"a": [data]}
    assert plain(data) == data
    for _ in range(100):
        data = [data]
    with pytest.raises(DocumentError, match="nested too deeply"):
        plain(data)


@pytest.mark.parametrize("wide", [2, 9, 30])
def test_an_alias_bomb_is_refused_at_once(wide: int) -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * wide)}]" for n in range(1, 40)]
    with pytest.raises(DocumentError, match="holds more than"):
        plain_yaml("\n".join(lines))


def test_an_alias_is_no_bomb() -> None:
    text = "a: &a {x: 1}\nb: [*a, *a]\n<<: {c: 1}\n"
    assert plain_yaml(text) == {"a": {"x": 1}, "b": [{"x": 1}] * 2, "c": 1}


@pytest.mark.parametrize("text", ["a: &m [*m]", "a: &m {b: *m}"])
def test_what_holds_itself_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="holds itself"):
        plain_yaml(text)


@pytest.mark.parametrize("digits", [5000, 100_000])
def test_a_number_of_many_digits_is_refused(digits: int) -> None:
    number = "9" * digits
    for read in (plain_yaml, plain_json):
        with pytest.raises(DocumentError, match="too many digits"):
            read(f'{{"a": {number}}}')


def test_dates_are_values_where_they_are_asked_for() -> None:
    assert plain_yaml("a: 2026-01-01", dates=True) == {"a": date(2026, 1, 1)}
    with pytest.raises(DocumentError, match="a: is a date"):
        plain_yaml("a: 2026-01-01")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"x" * (LARGEST_FILE + 1), "is larger than 16 MiB"),
        (None, "cannot be read: No such file"),
    ],
    ids=["bytes", "large", "absent"],
)
def test_a_file_that_is_no_text_is_refused(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DocumentError, match=problem):
        read_text(file)


def test_a_device_without_end_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="is no file"):
        read_text(Path("/dev/zero"))
    with pytest.raises(DocumentError, match="cannot be read"):
        read_text(tmp_path)


def test_a_pipe_is_read_where_it_may_be_and_never_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DocumentError, match="is a pipe"):
        read_text(pipe)
    with ThreadPoolExecutor(1) as other:
        other.submit(pipe.write_text, "a: 1")
        assert read_text(pipe, pipes=True) == "a: 1"


def test_marks_and_ends_of_lines_of_other_systems_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b'\xef\xbb\xbf{"a":\r\n1}\r\n')
    assert read_text(tmp_path / "file") == '{"a":\n1}\n'


@pytest.mark.parametrize("name", ["a" * 300, "a" * 5000, "a\0b", "x/" * 3000])
def test_a_name_that_no_file_can_have_is_not_there(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert not is_there(path)
    assert not is_file(path)
    assert not is_folder(path)
    assert yaml_files(path) == []
    with pytest.raises(DocumentError, match="cannot be read"):
        read_text(path)


def test_paths_start_beside_the_file_that_names_them(tmp_path: Path) -> None:
    assert beside(tmp_path, "a/b") == tmp_path / "a" / "b"
    assert beside(tmp_path, "/a") == Path("/a")
    assert beside(tmp_path, "~") == Path.home()
    assert beside(tmp_path, "~nobody-of-this-name/x").name == "x"

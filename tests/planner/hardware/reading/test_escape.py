"""Text of a user stays text in every language that it is put into."""

import ast
import json
import subprocess
from pathlib import Path

import pytest
import yaml
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from planner.hardware.reading.characters import is_strange, strange_in
from planner.hardware.reading.escape import (
    comment,
    markdown,
    shell_default,
    shell_words,
    shown,
    yaml_text,
)
from planner.launch.text.render import _environment
from planner.report.pages import script_json

MARKS = "abc \n\r\t\x00\x0b\x1b\x85\u2028\u2029\u202e\"'`$(){}[]<>|&;\\#!*-~%é漢"
PAYLOADS = (
    "x\ntouch owned",
    "x\n#SBATCH --wrap=touch",
    "$(touch owned)",
    "`touch owned`",
    "'; touch owned; '",
    '"; touch owned; "',
    "}touch owned",
    "a\\",
    "search:\n  tp: 1",
    "\x1b]0;owned\x07",
    "<script>owned()</script>",
    "</script><script>owned()</script>",
    "| a | b |",
    "[x](javascript:owned())",
)
TEXTS = st.text(MARKS, max_size=12) | st.text(max_size=20) | st.sampled_from(PAYLOADS)


def test_no_strange_character_is_printable() -> None:
    """Printable text holds nothing strange, so it is not searched."""
    assert not [
        c for c in map(chr, range(0x110000)) if is_strange(c) and strange_in(c) != [c]
    ]


@given(TEXTS)
def test_what_is_shown_moves_nothing(text: str) -> None:
    assert not any(map(is_strange, shown(text)))
    assert {c for c in shown(text, keep="\n") if is_strange(c)} <= {"\n"}
    assert shown("plain é漢 <b> $x") == "plain é漢 <b> $x"


@given(TEXTS)
def test_a_comment_is_one_line_of_shell_yaml_and_python(text: str) -> None:
    line = f"# {comment(text)}"
    assert len(line.splitlines()) == 1
    assert yaml.safe_load(f"{line}\na: 1") == {"a": 1}
    assert len(ast.parse(f"{line}\na = 1").body) == 1


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_yaml_is_read_back_and_its_head_is_comment(text: str, head: list[str]) -> None:
    value = {"a": [text], text: {"b": text}}
    written = yaml_text(value, head)
    assert yaml.safe_load(written) == value
    assert written.splitlines()[: len(head)] == [
        f"# {shown(line)}".rstrip() for line in head
    ]
    assert yaml.safe_load(yaml_text(value, short_in_one_line=True)) == value


def in_bash(script: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert list(folder.iterdir()) == []
    return done.stdout


@settings(max_examples=examples(40))
@given(st.lists(TEXTS.filter(lambda t: "\0" not in t), min_size=1, max_size=20))
def test_bash_reads_words_and_defaults_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    empty = tmp_path_factory.mktemp("bash", numbered=True)
    texts = [t for t in texts if t.isascii() or t.isprintable()]
    script = "".join(
        f"printf '%s\\0' {shell_words([text])}\n"
        f'export A={shell_default("A", text)}; printf "%s\\0" "$A"; unset A\n'
        f"# {comment(text)}\n"
        for text in texts
    )
    expected = [part for text in texts for part in (text, shown(text))]
    assert in_bash(script, empty).split("\0")[:-1] == expected


@given(TEXTS)
def test_markdown_shows_text_and_opens_nothing(text: str) -> None:
    md = MarkdownIt("commonmark").enable("table")
    safe = markdown(text)
    page = md.parse(f"# {safe}\n\n| a | b |\n| - | - |\n| {safe} | c |")
    kinds = {token.type for token in page}
    assert kinds <= {
        *("heading_open", "inline", "heading_close", "table_open", "table_close"),
        *("thead_open", "thead_close", "tbody_open", "tbody_close"),
        *("tr_open", "tr_close", "th_open", "th_close", "td_open", "td_close"),
    }
    inside = {child.type for token in page for child in token.children or ()}
    assert not inside & {"html_inline", "link_open", "image", "code_inline"}


@given(TEXTS)
def test_a_script_of_a_page_is_not_ended_by_its_data(text: str) -> None:
    written = script_json({"name": text})
    assert "<" not in written
    assert json.loads(written) == {"name": text}


def test_templates_have_a_filter_for_each_language() -> None:
    environment = _environment("planner.launch.text")
    text = environment.from_string(
        "{{ x | comment }}|{{ x | markdown }}|{{ 'A' | shell_default(x) }}"
    ).render(x="a\n|b")
    assert text == "a |b|a \\|b|${A:-'a\\n|b'}"

"""A name means nothing to a shell, a page or a terminal, whoever gave it."""

import re
import shlex
import unicodedata
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.hardware.fleets import TierSpec
from planner.hardware.reading.characters import is_strange
from planner.hardware.reading.files import SHIPPED
from planner.hardware.reading.names import (
    LONGEST_LINE,
    LONGEST_NAME,
    name_like,
    one_line,
    plain_name,
)

ROOT = Path(__file__).resolve().parents[4]
PAYLOADS = (
    "",
    " ",
    "x\ntouch owned",
    "x\n#SBATCH --wrap=touch",
    "a\x00b",
    "\x1b[31mred",
    "\u202egnp.exe",
    "a\u2028b",
    "../../etc/passwd",
    "-rf",
    "$(touch owned)",
    "`touch owned`",
    "a; b",
    "a & b",
    "a | b",
    "a > b",
    "<b>",
    '"',
    "'",
    "\\",
    "{{ 7 * 7 }}",
    "~root",
    "a*",
    "what?",
    "x" * (LONGEST_NAME + 1),
)
TEXTS = st.text(max_size=40) | st.sampled_from(PAYLOADS)


def is_name(text: str) -> bool:
    try:
        return plain_name(text) == text
    except ValueError:
        return False


@pytest.mark.parametrize("text", PAYLOADS, ids=ascii)
def test_what_means_something_elsewhere_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="is no name") as refused:
        plain_name(text)
    assert len(str(refused.value)) < 400
    assert not any(map(is_strange, str(refused.value)))
    with pytest.raises(ValueError, match="is no name"):
        TierSpec(name=text, gpus=8, oversubscription=1)


@given(TEXTS)
def test_a_name_is_one_plain_line_everywhere(text: str) -> None:
    if not is_name(text):
        return
    assert 0 < len(text) <= LONGEST_NAME
    assert text == text.strip()
    assert text.isprintable()
    assert not set(text) & set("\"'`$\\;&|<>*?!~{}^\n")
    assert text[0] not in "-./#"
    # A comment, a word of a command, and a value of YAML hold it as it stands.
    assert shlex.split(shlex.quote(text)) == [text]
    assert yaml.safe_load(yaml.safe_dump({"name": text}))["name"] == text


@given(TEXTS)
def test_the_nearest_name_is_a_name(text: str) -> None:
    assert is_name(name_like(text))
    assert name_like(name_like(text)) == name_like(text)
    if is_name(text):
        assert name_like(text) == text


@given(st.text(max_size=60))
def test_a_line_holds_nothing_that_is_not_shown(text: str) -> None:
    strange = [c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    turned = re.findall("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
    if strange or turned:
        with pytest.raises(ValueError, match="not one line"):
            one_line(text)
    else:
        assert one_line(text) == text


def test_a_line_has_an_end() -> None:
    with pytest.raises(ValueError, match="at most"):
        one_line("x" * (LONGEST_LINE + 1))


def test_what_ships_is_named_by_names() -> None:
    kinds = ("gpus", "links", "nodes", "clusters")
    every = [name for kind in kinds for name in SHIPPED.names(kind)]
    every += [path.stem for path in (ROOT / "configs").rglob("*.yaml")]
    for path in (ROOT / "configs" / "purchases").glob("*.yaml"):
        candidates = yaml.safe_load(path.read_text())["candidates"]
        every += [c["name"] for c in candidates if "name" in c]
    every += ["meta-llama/Llama-3.1-8B", "Qwen2.5 (7B)", "GB200 NVL72", "大模型-7b"]
    assert [name for name in every if not is_name(name)] == []

"""Tools that are told by their marks, so that no other tool is taken for them."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from planner.errors import BadInputError
from planner.hardware.reading.yaml_text import parse_yaml

_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)


class Tool(BaseModel):
    """A tool whose files are not read.

    Attributes:
        title: Name of the tool. [text]
        why: What is missing, as the end of a sentence. [text]
        marks: Expressions of which one is found in the tool's files alone. [text]
        source: Where the marks are documented. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    why: str
    marks: tuple[str, ...]
    source: str

    def mark_in(self, text: str) -> str:
        """The first mark of the tool in a text; empty without one. [text]."""
        found = (re.search(mark, text, re.MULTILINE) for mark in self.marks)
        return next((match[0].strip() for match in found if match), "")


@cache
def tools() -> tuple[Tool, ...]:
    """Read ``planner/launch/other_tools/tools.yaml``. [-]."""
    text = (files("planner.launch.other_tools") / "tools.yaml").read_text("utf-8")
    return tuple(Tool.model_validate(each) for each in parse_yaml(text)["tools"])


def refuse_others(texts: Mapping[str, str]) -> None:
    """Refuse files of a tool that is known and not read.

    Raises:
        BadInputError: A file has a mark of such a tool, outside of comments.
    """
    for name, text in texts.items():
        plain = _COMMENT.sub("", text)
        for tool in tools():
            if mark := tool.mark_in(plain):
                raise BadInputError(
                    f"this is a file of {tool.title}; {tool.why}",
                    file=name,
                    field=mark,
                    allowed="files of a tool that is read (planner catalog targets), "
                    "or --target NAME where the mark misleads",
                )

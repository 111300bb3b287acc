"""Abilities of every answer: JSON, a page, a card in a notebook, a table."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import BaseModel, PrivateAttr

from planner.questions.inputs.given import FilePath
from planner.questions.outputs.files import write_whole

if TYPE_CHECKING:
    from planner.document.blocks import Document

Rows = list[dict[str, object]]
"""A table, ready for `pandas.DataFrame`: plain values by the name of their column."""


class Answer(BaseModel, ABC):
    """An answer of planner, which shows itself in a notebook."""

    _flow: Any = PrivateAttr(default=None)
    """Job and search behind the answer, for pages and launch files."""

    @classmethod
    def of(cls, answer: BaseModel, flow: object = None) -> Self:
        """Give the answer of a flow the abilities of this class.

        Args:
            answer: The answer. [-]
            flow: Job and search behind it, where pages need them. [-]

        Returns:
            An equal answer. [-]
        """
        fields = {name: getattr(answer, name) for name in type(answer).model_fields}
        made = cast("Self", cls.model_construct(**fields))
        made._flow = flow  # noqa: SLF001  # of this class
        return made

    @abstractmethod
    def table(self) -> Rows:
        """List the main part of the answer row by row.

        Returns:
            Values by the name of their column. [-]
        """

    @abstractmethod
    def _page(self) -> "Document":
        """The page that notebooks show a part of."""

    def _html(self) -> str:
        """The whole page as one file. [HTML]."""
        from planner.report.pages import page_html  # noqa: PLC0415

        return page_html(self._page())

    def to_json(self) -> str:
        """Write the answer as `--json` of the command does.

        Returns:
            Indented JSON. [text]
        """
        return self.model_dump_json(by_alias=True, indent=2)

    def report(self, path: FilePath) -> None:
        """Write figures and tables as one page that needs no network.

        Args:
            path: File of the page. [path]

        Raises:
            BadInputError: The file cannot be written.
        """
        write_whole(Path(path), self._html())

    def _repr_html_(self) -> str:
        from planner.report.pages import card_html  # noqa: PLC0415

        return card_html(self._page())

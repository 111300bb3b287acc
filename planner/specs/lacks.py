"""What a writer of launch files has no words for: one record for each fact.

Search, verifier, explanations and the writers themselves ask the same records.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from planner.specs.layout import Layout
from planner.specs.offload import CATEGORIES


@dataclass(frozen=True)
class Lack:
    """Something in a job, or in its layouts, that a target has no words for.

    Attributes:
        feature: What the target lacks, as half a sentence. [text]
        field: Where a plan asks for it, as a path below `layout` or `spec`. [text]
        value: What the job asks for; of a layout's field what the layout has. [-]
        allowed: What the target has in its place. [text]
        when: Layouts that ask for it, of a layout or of columns of layouts, with
            `&` and `|` between conditions; None: every layout of the job does. [-]
        of_layers: Whether the condition reads the kind of recompute. [-]
    """

    feature: str
    field: str
    value: object = None
    allowed: str = ""
    when: Callable[[Any], Any] | None = None
    of_layers: bool = False

    def holds(self, view: "View") -> bool:
        """Whether a layout asks for it.

        Args:
            view: Of the layout. [-]

        Returns:
            True of every layout where the job itself asks for it.
        """
        return self.when is None or bool(self.when(view))

    def shown(self, view: "View") -> object:
        """What the job or the layout asks for.

        Args:
            view: Of the layout. [-]

        Returns:
            A value for a message. [-]
        """
        if self.value is not None or not self.field.startswith("layout."):
            return self.value
        return view.value(self.field.removeprefix("layout."))


class View:
    """A layout as the conditions of records read it."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layout, name)

    @property
    def recompute(self) -> str:
        """The one kind of all layers; `mixed` where they differ. [text]."""
        stages = self._layout.stages
        kinds = {part.kind for stage in stages for part in stage.recompute}
        return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "none"

    def value(self, path: str) -> object:
        """What the layout has where a record points.

        Args:
            path: Below `layout`. [text]

        Returns:
            A value for a message. [-]
        """
        if path == "stages.recompute":
            return self.recompute
        if path != "offload":
            return getattr(self._layout, path)
        its = self._layout.offload
        moved = [name for name in CATEGORIES if getattr(its, name)]
        return ", ".join(moved) or "none"


@dataclass(frozen=True)
class Writer:
    """A target that files of a framework are written for.

    Attributes:
        target: Its name on the command line. [text]
        lacks: What of a job, and of layouts of it, the target has no words for. [-]
    """

    target: str
    lacks: Callable[[Any], Iterator[Lack]]

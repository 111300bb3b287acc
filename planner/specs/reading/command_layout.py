"""The layout of `--layout` in place of those of a job."""

from collections.abc import Sequence
from typing import Any

from planner.errors import BadInputError
from planner.specs.layouts.layout import PartialLayout


def replace_layouts(
    fields: dict[str, Any], layout: PartialLayout, assignments: Sequence[str]
) -> None:
    """Put one layout in place of all layouts of a job; assignments may fill it."""
    its = layout.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for path in (each.partition("=")[0].strip() for each in assignments):
        first, *keys = path.split(".")
        if first == "layout" and _gives(its, keys):
            raise BadInputError(
                "is given by --layout, too",
                file="--set",
                field=path,
                allowed="one of the two",
            )
    for phase in fields.get("phases") or ():
        if isinstance(phase, dict):
            phase.pop("layout", None)
    fields["layout"] = its


def _gives(block: object, keys: Sequence[str]) -> bool:
    """Tell if a block holds something at a path, or above or below it."""
    for key in keys:
        if not isinstance(block, dict):
            return True
        if block.get(key) is None:
            return False
        block = block[key]
    return True

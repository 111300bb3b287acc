"""The user's own folder of hardware."""

from pathlib import Path

from hardware.catalog import CatalogError, overlay
from planner.errors import BadInputError


def lay_over(hardware: Path | None) -> None:
    """Lay the folder of `--hardware` over our own files, or take the last one away.

    Args:
        hardware: The folder, or None. [-]

    Raises:
        BadInputError: No such folder, or a file in it is wrong.
    """
    try:
        overlay(hardware)
    except CatalogError as error:
        raise BadInputError(str(error), field="--hardware") from error

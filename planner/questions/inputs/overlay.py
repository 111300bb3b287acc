"""The catalog of a command: ours, or with the user's own folder laid over it."""

from pathlib import Path

from planner.errors import BadInputError
from planner.hardware.overlay import laid_over
from planner.hardware.reading.files import SHIPPED, Catalog, CatalogError


def catalog_with(hardware: Path | None) -> Catalog:
    """Our own files of facts with the folder of `--hardware` laid over them.

    Args:
        hardware: The folder, or None. [-]

    Returns:
        The catalog. [-]

    Raises:
        BadInputError: No such folder, or a file in it is wrong.
    """
    if hardware is None:
        return SHIPPED
    try:
        return laid_over(hardware)
    except CatalogError as error:
        raise BadInputError(str(error), field="--hardware") from error

"""Folders of files that ship: beside a checkout's package, inside a built package."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]


def shipped(name: str) -> Path:
    """Folder of files that ship.

    Args:
        name: `configs`, or `hardware` for datasheets, rates and prices. [text]

    Returns:
        The folder of the checkout, or of the built package. [-]
    """
    # The package first: site-packages may hold a `configs` of somebody else.
    inside = _PACKAGE / "shipped" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name

"""A number with its unit, in words."""


def counted(number: int, unit: str) -> str:
    """Number and unit, as `1 GPU` or `2,048 GPUs`. [text]."""
    return f"{number:,} {unit}" if number == 1 else f"{number:,} {unit}s"

"""Money and durations as people say them."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
_SCALES = ((1e9, "BUSD"), (1e6, "MUSD"), (1e3, "kUSD"))


def money(amount: float) -> str:
    """An amount of money in words.

    Args:
        amount: Of money. [USD]

    Returns:
        Three or four digits with a unit: `63.4 MUSD`. [text]
    """
    for scale, unit in _SCALES:
        if abs(amount) >= scale * 0.9995:
            return f"{_digits(amount / scale)} {unit}"
    return f"{_digits(amount)} USD"


def days(seconds: float) -> str:
    """A duration in words.

    Args:
        seconds: How long. [s]

    Returns:
        Three digits with a unit: `57.1 d`. [text]
    """
    for scale, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= scale:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds)} s"


def _digits(value: float) -> str:
    """Three digits, or all before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"

"""Money and durations as people say them."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
_SCALES = ((1e9, "BUSD"), (1e6, "MUSD"), (1e3, "kUSD"))
_COUNTS = ((1e11, 1e12, " T"), (1e9, 1e9, "B"), (1e6, 1e6, "M"), (0.0, 1e3, "k"))
"""Least count, scale and letter of a count of tokens. [token]"""


def money(amount: float) -> str:
    """An amount of money in words.

    Args:
        amount: Amount of money. [USD]
    """
    for scale, unit in _SCALES:
        if abs(amount) >= scale * 0.9995:
            return f"{_digits(amount / scale)} {unit}"
    return f"{_digits(amount)} USD"


def days(seconds: float) -> str:
    """A duration in words.

    Args:
        seconds: The duration. [s]
    """
    for scale, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= scale:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds)} s"


def money_unit(most: float) -> tuple[float, str]:
    """Unit in which several amounts of money are drawn.

    Args:
        most: The largest amount. [USD]

    Returns:
        Dollars of the unit, and its name. [USD]
    """
    return next((each for each in _SCALES if most >= each[0]), (1.0, "USD"))


def days_unit(longest: float) -> tuple[float, str]:
    """Unit in which several durations are drawn.

    Args:
        longest: The longest. [s]

    Returns:
        Seconds of the unit, and its name. [s]
    """
    units = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"))
    return next((each for each in units if longest >= each[0]), (1.0, "s"))


def energy_unit(most_mwh: float) -> tuple[float, str]:
    """Unit in which several energies are drawn.

    Args:
        most_mwh: The largest. [MWh]

    Returns:
        Energy of the unit, and its name. [MWh]
    """
    units = ((1e3, "GWh"), (1.0, "MWh"))
    return next((each for each in units if most_mwh >= each[0]), (1e-3, "kWh"))


def between(low: str, high: str) -> str:
    """Bounds in words, with the unit once where both have the same."""
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def saved_for(seconds_per_usd: float, amount: float) -> str:
    """Time saved for money, in a unit of money no larger than the amount spent.

    Args:
        seconds_per_usd: Time saved for a dollar. [s/USD]
        amount: Money that is spent. [USD]
    """
    whole = ((scale, unit) for scale, unit in _SCALES if scale <= amount)
    scale, unit = next(whole, (min(amount, 1.0), "USD"))
    return f"{days(seconds_per_usd * scale)} a {unit}"


def _digits(value: float) -> str:
    """Three digits, or all before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def tokens_words(tokens: float) -> str:
    """A count of tokens in words.

    Args:
        tokens: Tokens. [token]
    """
    scale, letter = next((s, word) for least, s, word in _COUNTS if tokens >= least)
    return f"{tokens / scale:,.4g}{letter} tokens"


def energy_words(energy_mwh: float) -> str:
    """An energy in words.

    Args:
        energy_mwh: Energy. [MWh]
    """
    if energy_mwh >= 1:
        return f"{energy_mwh:,.0f} MWh"
    return f"{energy_mwh * 1e3:,.3g} kWh"

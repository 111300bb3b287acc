"""Ports for launches: below those that the system hands out, and free when asked."""

import random
import socket

LOWEST, HIGHEST = 20000, 32000
"""Range that is drawn from; Linux hands out ports from 32768 on. [1]"""


def free_port() -> int:
    """Draw a port on which nothing listens, over IPv4 or IPv6.

    Returns:
        The port. [1]
    """
    drawn = random.SystemRandom()
    while True:
        port = drawn.randrange(LOWEST, HIGHEST)
        if all(_is_free(port, family) for family in (socket.AF_INET, socket.AF_INET6)):
            return port


def _is_free(port: int, family: socket.AddressFamily) -> bool:
    try:
        with socket.socket(family) as tried:
            tried.bind(("", port))
    except OSError as error:
        # A machine without IPv6 has no such port to lose.
        return "Address family" in str(error) or "assign requested" in str(error)
    return True

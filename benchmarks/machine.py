"""Machine and date of a benchmark: printed above every table."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
RSS_UNIT = 1 if platform.system() == "Darwin" else 1024
"""Unit in which the system reports a resident set. [B]"""


def machine() -> str:
    """Name the processor, its cores, the interpreter and the date.

    Returns:
        One line. [text]
    """
    name = platform.processor() or platform.machine()
    if CPU_INFO.exists():
        lines = CPU_INFO.read_text().splitlines()
        names = (
            line.split(":", 1)[1].strip() for line in lines if "model name" in line
        )
        name = next(names, name)
    today = datetime.now(tz=UTC).date()
    python = platform.python_version()
    return f"{today}, {name}, {os.cpu_count()} cores, Python {python}"

"""Python imports this at start: ranks of a launch on CPUs get what is in `cpu`."""

import os

if "RANK" in os.environ and os.environ.get("REPORTS"):
    import cpu

    cpu.install()

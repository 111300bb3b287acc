"""Signals that leave a loop, a function or a script."""


class _LeftError(Exception):
    """Leaves the statements around it.

    Attributes:
        status: Exit status, or levels of loops that are left. [1]
    """

    def __init__(self, status: int | None = 0) -> None:
        self.status = status
        super().__init__(str(status))


class ExitError(_LeftError):
    """Ends a shell."""


class ReturnError(_LeftError):
    """Ends a function, or a script that another one sources."""


class BreakError(_LeftError):
    """Leaves a loop."""


class ContinueError(_LeftError):
    """Goes on with the next round of a loop."""

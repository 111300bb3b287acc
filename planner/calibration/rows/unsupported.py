"""Error of a measured row that cannot be priced."""


class UnsupportedError(Exception):
    """A row that describes a run which planner has no price for; one line."""

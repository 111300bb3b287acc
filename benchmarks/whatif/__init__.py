"""Time of a what-if answer of `planner serve`."""

"""Finish times of operations, without the search's simulator."""

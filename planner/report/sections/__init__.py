"""Sections that answers share: layout, costs, ties, the run, sources."""

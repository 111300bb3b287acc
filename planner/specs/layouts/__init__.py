"""The layout: its axes, its parts, and how it is told."""

"""The command line: parsing and printing, one file for each command."""

from planner.cli.app import app, main

__all__ = ["app", "main"]

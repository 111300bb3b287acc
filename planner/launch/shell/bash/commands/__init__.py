"""Builtin commands of bash, and small programs whose output is followed."""

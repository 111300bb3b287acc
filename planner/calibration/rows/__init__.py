"""Measured rows and logs, read and checked."""

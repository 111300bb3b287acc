"""Errors of predictions over measured rows."""

"""Fits of stack constants to measured rows."""

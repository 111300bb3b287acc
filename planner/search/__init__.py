"""Enumerate, bound, solve: the only package that knows OR-Tools."""

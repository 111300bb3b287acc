"""Enumerate, bound, solve: the only room that knows OR-Tools."""

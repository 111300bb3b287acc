"""Boxes of splits, each bounded by the step at its lower corner."""

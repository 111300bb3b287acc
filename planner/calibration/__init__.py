"""Measured training runs: read them, map them to jobs, price them, compare."""

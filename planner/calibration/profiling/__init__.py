"""Measurements of this machine's GPUs, for `--calibration`."""

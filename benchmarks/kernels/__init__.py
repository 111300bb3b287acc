"""Priced kernels against NVIDIA's kernel tables, and the fit of their shapes."""

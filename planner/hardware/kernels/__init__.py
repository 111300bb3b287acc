"""Measured constants of kernels: shapes of products, times of scans."""

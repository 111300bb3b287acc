"""Bytes that the passes, the buffers and the optimizer step take."""

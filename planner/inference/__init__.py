"""INFERENCE: what generating text with a model holds in memory. Pure functions."""

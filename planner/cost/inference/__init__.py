"""INFERENCE: memory that generating text with a model needs. Pure functions."""

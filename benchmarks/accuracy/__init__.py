"""Predictions against published runs."""

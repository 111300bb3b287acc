"""Prices: pure functions on columns that fill the table of integers."""

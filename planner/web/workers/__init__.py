"""Processes that answer questions, in limits."""

"""Searches for another amount than the step: cost, energy, memory."""

"""Costs of planner and errors of its predictions: run as modules."""

"""Exact answers for one candidate: linear programs and CP-SAT."""

"""Answers: estimate, result, explanation, comparison, whole run."""

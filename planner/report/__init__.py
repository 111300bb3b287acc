"""Answers as documents, screens and charts; the caller decides where they go."""

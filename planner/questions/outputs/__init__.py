"""Answers as tables, pages and files."""

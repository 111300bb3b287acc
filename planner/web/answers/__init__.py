"""Answers to questions of pages, each made in a process of its own."""

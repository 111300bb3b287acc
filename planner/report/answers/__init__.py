"""Answers with a screen and a page of their own: one file each."""

"""Blocks that carry a state along the sequence in place of keys."""

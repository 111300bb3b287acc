"""Words of measured rows, and what they say of a run."""

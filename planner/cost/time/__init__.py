"""Time of a step by cause, for every mesh at once."""

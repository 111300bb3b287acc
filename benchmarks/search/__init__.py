"""Time and memory of the search, as whole processes and phase by phase."""

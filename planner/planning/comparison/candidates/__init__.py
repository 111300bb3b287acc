"""Price of one purchase candidate, by count of nodes."""

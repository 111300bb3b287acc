"""What the search costs, as whole processes and phase by phase."""

"""The search beside Calculon: its space, and the part that ours contains."""

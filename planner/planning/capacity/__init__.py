"""The flow of `planner memory`: the most that fits, and what does."""

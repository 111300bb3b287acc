"""What planner costs and how true it is: run as modules."""

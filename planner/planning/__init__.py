"""The flow of `planner plan`: search, choice among ties, reasons."""

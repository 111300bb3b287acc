"""Pure functions of the cost table: from a stage split to time and memory."""

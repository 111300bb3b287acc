"""The terms that an estimate adds up, down to the operator, with their sources."""

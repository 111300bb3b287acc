"""Lower bounds on time and memory, without a solver."""

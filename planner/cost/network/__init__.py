"""Time on links: collectives between GPUs, and copies to the host."""

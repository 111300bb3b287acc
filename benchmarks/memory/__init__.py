"""Memory predictions against PyTorch's own trackers."""

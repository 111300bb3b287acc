"""PyTorch's caching allocator, and what it reserves for the trace of a replay."""

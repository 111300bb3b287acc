"""PyTorch's own allocator, driven without a GPU, as a judge of the simulated one."""

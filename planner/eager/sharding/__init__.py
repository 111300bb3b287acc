"""Sharded runs: FSDP2, DTensor and their groups."""

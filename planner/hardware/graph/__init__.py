"""Topology graph of a cluster, and placement of ranks on it."""

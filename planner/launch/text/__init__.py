"""Texts of every folder: scripts, the README, and variables of the environment."""

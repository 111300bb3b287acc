"""Checks of Megatron-LM: arguments refused together, and what defaults cost."""

"""Megatron-Bridge: a recipe of NVIDIA-NeMo with a plan's overrides."""

"""Megatron-LM: arguments of pretrain_gpt.py, written and read back."""

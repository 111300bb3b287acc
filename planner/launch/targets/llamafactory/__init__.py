"""LLaMA-Factory: one YAML for its own Trainer, and DeepSpeed's file beside it."""

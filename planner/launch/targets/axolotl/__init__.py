"""axolotl: one YAML for its trainer, and DeepSpeed's file beside it."""

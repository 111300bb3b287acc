"""TRL: one YAML for `trl sft`, and accelerate's and DeepSpeed's files beside it."""

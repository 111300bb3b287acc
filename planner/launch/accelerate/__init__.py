"""accelerate: its YAML, transformers' or TRL's arguments, PEFT, and a training script."""

"""accelerate: its YAML, arguments of transformers, TRL and PEFT, and a script."""

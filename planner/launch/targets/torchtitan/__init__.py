"""torchtitan: a module of its configuration registry."""

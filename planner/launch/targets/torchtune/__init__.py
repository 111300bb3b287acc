"""torchtune: one YAML for a recipe of its own."""

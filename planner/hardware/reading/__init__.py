"""YAML and JSON with units, names and one clear error."""

"""Tools whose files are recognised and not read."""

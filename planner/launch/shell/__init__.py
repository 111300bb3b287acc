"""Launch scripts as bash reads them: the command that starts the ranks."""

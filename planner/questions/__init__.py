"""One file a command: what it is asked, how it answers, its function in Python."""

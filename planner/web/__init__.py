"""Pages of planner in a browser, served on this machine: the extra `web`."""

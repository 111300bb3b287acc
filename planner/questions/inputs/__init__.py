"""Jobs, limits and files of facts, as a caller gives them."""

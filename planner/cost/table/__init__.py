"""One table of integers that search and verifier read."""

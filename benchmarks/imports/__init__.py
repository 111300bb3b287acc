"""Public launch files, read back and priced."""

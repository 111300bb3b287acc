"""Parameters that a rank holds, and the bytes of their states."""

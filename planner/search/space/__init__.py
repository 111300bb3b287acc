"""The declared space: candidates as columns, and rules that remove."""

"""The objective of a job: what is sought, and what is said of it."""

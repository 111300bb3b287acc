"""The commands as functions of Python: a job goes in, an answer comes out."""

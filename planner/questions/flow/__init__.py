"""From a job to an answer, the one way that the command line and Python share."""

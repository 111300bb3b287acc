"""Methods of training, by the words of the tool that starts a run."""

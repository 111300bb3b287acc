"""Writers and readers of launch files, one folder a target."""

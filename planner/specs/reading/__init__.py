"""Reading of specs, with one error that names file and field."""

"""The one error that a model description can cause."""


class ModelConfigError(ValueError):
    """A model description that cannot be read as an architecture.

    The message says which field was given what, and what is allowed.
    """

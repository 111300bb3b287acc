"""Errors that a model description can cause."""


class ModelConfigError(ValueError):
    """A model description that cannot be read as an architecture.

    The message says which field was given what, and what is allowed.

    Attributes:
        problem: The message without the names that could stand in its place. [text]
    """

    def __init__(self, problem: str, names: str = "") -> None:
        super().__init__(f"{problem}; {names}" if names else problem)
        self.problem = problem


class UnsupportedModelError(ModelConfigError):
    """A model of an architecture that no family has."""

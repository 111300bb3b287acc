"""Fixtures of tests in several rooms."""

import pytest

from planner.planning.capacity import alternatives


@pytest.fixture
def own_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's own method alone: a sixth of the work."""
    monkeypatch.setattr(alternatives, "METHODS", ())

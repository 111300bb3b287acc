"""The flag that writes golden folders anew."""

import pytest


@pytest.fixture
def rewriting(request: pytest.FixtureRequest) -> bool:
    """Whether goldens are written rather than compared."""
    return bool(request.config.getoption("--rewrite-goldens"))

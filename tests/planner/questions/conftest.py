"""A job that plans in a fraction of a second."""

from typing import Any

import pytest
from purchases import JOB


@pytest.fixture
def fields() -> dict[str, Any]:
    """Fields of a job of eight layers on one node."""
    return {**JOB, "cluster": {"name": "one-node", "node": "dgx-h100", "nodes": 1}}

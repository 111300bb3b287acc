"""One search over the workers of a real Dask cluster, one of them killed.

Needs the extra [distributed]; `pytest -m distributed`.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from purchases import JOB
from test_distributed import Cluster

import planner
from planner.planning.comparison import parts
from planner.search import first_tier

pytestmark = pytest.mark.distributed
ON_A_NODE = {**JOB, "cluster": {"node": "dgx-h100", "nodes": 1}, "search": {}}
MESHES = 16
"""Meshes of a part, so that a small job has many. [1]"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every space is a large one; results of parts are noted as they come."""
    monkeypatch.setattr(first_tier, "PART", MESHES)
    taken: list[Any] = []
    result = parts._result

    def noted(*arguments: Any) -> Any:
        taken.append(result(*arguments))
        return taken[-1]

    monkeypatch.setattr(parts, "_result", noted)
    return taken


def plan(scheduler: str | None = None) -> dict[str, Any]:
    """The answer without the time that it took."""
    found = planner.plan(ON_A_NODE, scheduler=scheduler).model_dump()
    del found["search"]["seconds"]
    return found


def test_workers_and_their_loss_change_no_bit(
    cluster: Cluster, in_parts: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, one killed after the first part, and one alone: as on no cluster."""
    here = plan()
    assert not in_parts
    monkeypatch.setattr(first_tier, "PARALLEL_FROM", 1)
    assert plan(cluster.address) == here
    count = len(in_parts)
    assert count > 2
    in_parts.clear()
    noted = parts._result

    def killing(*arguments: Any) -> Any:
        found = noted(*arguments)
        cluster.workers[0].kill()
        return found

    monkeypatch.setattr(parts, "_result", killing)
    assert plan(cluster.address) == here
    assert len(in_parts) == count
    assert plan(cluster.address) == here

"""A job of a lone GPU is offered the usual machine of that GPU, not more lone ones."""

import pytest
from explained_jobs import case

from hardware import catalog
from planner.cost.workload import Workload
from planner.explanation.relaxations import _more_gpus


@pytest.mark.parametrize(
    ("model", "node", "used", "wanted"),
    [
        ("llama-3.1-8b", "workstation-rtx-4090-1", None, ("server-rtx-4090-8", 1)),
        ("llama-3.1-70b", "dgx-h100", 1, ("dgx-h100", 4)),
    ],
)
def test_whole_machines_are_offered(
    model: str, node: str, used: int | None, wanted: tuple[str, int]
) -> None:
    part = {"gpus_per_node": used} if used else {}
    own = {"name": "own", "node": node, "nodes": 1} | part
    job = case({}, model=model, cluster=own, framework="accelerate", seq_len=4096)
    (option,) = _more_gpus(job)
    name, nodes = wanted
    assert f"cluster.node={name}" in option.assignments
    assert f"cluster.nodes={nodes}" in option.assignments
    assert f"({nodes} node{'s' * (nodes > 1)} of 8)" in option.change


def test_larger_machines_have_more_gpus_than_the_cluster() -> None:
    own: Workload = case({}).workloads[0]
    cluster = own.topology.cluster
    for node in catalog.larger_machines(cluster):
        assert node.gpu == cluster.gpu.name
        assert node.gpus_per_node > cluster.gpus

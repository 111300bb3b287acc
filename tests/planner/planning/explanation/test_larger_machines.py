"""A job of a lone GPU is offered the usual machine of that GPU, not more lone ones."""

from explained_jobs import case

from planner.cost.workload import Workload
from planner.hardware import catalog
from planner.planning.explanation.relaxations import Option, _more_gpus


def option(model: str, node: str, **part: int) -> Option:
    own = {"name": "own", "node": node, "nodes": 1} | part
    job = case({}, model=model, cluster=own, framework="accelerate", seq_len=4096)
    (only,) = _more_gpus(job)
    return only


def test_one_machine_is_offered_where_it_holds_the_job() -> None:
    """States of 16 B a parameter: 128 GB of 8B, and cards of 24 GB."""
    only = option("llama-3.1-8b", "workstation-rtx-4090-1")
    assert "cluster.nodes=1" in only.assignments
    assert "(1 node of " in only.change


def test_nodes_are_whole_where_one_is_not_enough() -> None:
    only = option("llama-3.1-405b", "dgx-h100", gpus_per_node=1)
    assert "cluster.gpus_per_node=null" in only.assignments
    assert "nodes of 8) in place of 1" in only.change


def test_larger_machines_have_more_gpus_than_the_cluster() -> None:
    own: Workload = case({}).workloads[0]
    cluster = own.topology.cluster
    for node in catalog.larger_machines(cluster):
        assert node.gpu == cluster.gpu.name
        assert node.gpus_per_node > cluster.gpus

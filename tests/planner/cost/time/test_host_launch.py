"""A pass lasts at least as long as its host takes to launch it."""

import pytest
from test_stack_physics import context, job, number

from planner.cost.time.columns import Context, Parts
from planner.cost.time.host_launch import launched
from planner.hardware.host import launch_time


def test_a_pass_lasts_as_long_as_its_launches() -> None:
    """Host 3 ms and 4 ms: the device's 1 ms waits 2, its 9 ms wait nothing."""
    its = context(job(host_forward=3e-3, host_backward=4e-3, latency=1.0))
    device = (
        Parts().plus("compute", number(1e-3)),
        Parts().plus("compute", number(9e-3)),
    )
    forward, backward = launched(its, *device)
    assert forward.by_cause["other"] == pytest.approx(2e-3)
    assert forward.waits["launches"] == forward.by_cause["other"]
    assert backward.by_cause["other"] == 0.0
    _, again = launched(its, *device, again=2.0)
    assert again.total == pytest.approx(10e-3)


def test_graphs_and_latency_act_on_the_host() -> None:
    device = Parts().plus("compute", number(0.0)), Parts().plus("compute", number(0.0))
    slow = context(job(host_forward=1e-3, latency=2.0))
    assert launched(slow, *device)[0].total == pytest.approx(2e-3)
    graph = context(job(host_forward=1e-3, cuda_graphs="layer"))
    assert launched(graph, *device)[0].total == 0.0


@pytest.mark.parametrize(
    ("tp", "routed", "expected"),
    [(1, False, 1.0), (2, False, 1.5), (8, True, 1.0 + 0.5 + 2.0)],
)
def test_the_host_launches_exchanges_and_experts_each_way(
    tp: int, expected: float, *, routed: bool
) -> None:
    parts = {"host_tensor": 0.5, "host_experts": 2.0}
    layer = {"host_forward": 1.0, "host_backward": 1.0, "latency": 1.0}
    its = context(job(**layer, **parts), tp=tp)
    device = Parts().plus("compute", number(0.0)), Parts().plus("compute", number(0.0))
    for each in launched(its, *device, routed=routed):
        assert float(each.total[0]) == pytest.approx(expected * host_of(its))


def host_of(its: Context) -> float:
    """Time of the node's host over that of DGX H100's."""
    return launch_time(its.pricing.topology.cluster.host_link.name)


def test_hosts_launch_at_their_own_speed() -> None:
    """An A100's host takes 1.4 times as long as an H100's, Grace 1.25 times."""
    device = Parts().plus("compute", number(0.0)), Parts().plus("compute", number(0.0))
    hosts = {"dgx-h100": 1e-3, "dgx-a100-80gb": 1.4e-3, "gh200-1": 1.25e-3}
    for node, expected in hosts.items():
        its = context(job(node, host_forward=1e-3, latency=1.0))
        assert launched(its, *device)[0].total == pytest.approx(expected)
    assert launch_time("no such link") == 1.0

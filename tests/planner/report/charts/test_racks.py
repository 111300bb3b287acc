"""Which ranks share what is what the topology's own groups say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.cost.workload import Workload
from planner.job.resolve import resolve
from planner.planning.prediction.predict import complete
from planner.report.charts.racks import hosted, level_names, picture, reaches, shares
from planner.specs.reading.layout_line import read_layout
from planner.specs.reading.read import read_spec

JOBS = Path(__file__).parents[4] / "configs/jobs"


def workload_of(name: str, *assignments: str) -> Workload:
    path = JOBS / f"{name}.yaml"
    (workload,) = resolve(
        read_spec(path, assignments), file=str(path), base=path.parent
    )
    return workload


@pytest.mark.parametrize("order", ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"])
@pytest.mark.parametrize("shape", ["tp=4,pp=2,dp=4", "tp=2,pp=2,cp=2,dp=4"])
def test_nodes_that_a_group_touches_are_counted(order: str, shape: str) -> None:
    """As many scale-up domains as the placement's group view has."""
    workload = workload_of("llama-3.1-70b-32-h100", "framework=torchtitan", "stack={}")
    layout = complete(workload, read_layout(f"{shape},stages=even"))
    layout = layout.model_copy(update={"order": order})
    (ranks,) = hosted(workload, layout)
    its = ranks.layout
    inner = its.tp * its.cp
    inside = order.endswith("pp-dp")
    strides = {
        "tensor": (its.tp, 1),
        "context": (its.cp, its.tp),
        "pipeline": (its.pp, inner if inside else inner * its.dp),
        "data": (its.dp, inner * its.pp if inside else inner),
    }
    found = {axis: (size, touched[0]) for axis, size, touched in reaches(ranks)}
    for axis, (size, stride) in strides.items():
        if size > 1:
            view = ranks.topology.group(((size, stride),))
            assert found[axis] == (size, view.domains)


def test_every_rank_has_its_own_place() -> None:
    workload = workload_of("mixtral-8x7b-64-h100")
    layout = complete(workload, read_layout("tp=2,pp=2,ep=4,stages=even"))
    (ranks,) = hosted(workload, layout)
    at = ranks.coordinates()
    places = np.stack([at[axis] for axis in ("tp", "cp", "dp", "pp")])
    assert len(np.unique(places, axis=1).T) == layout.gpus == ranks.count
    found = {axis: size for axis, size, _ in reaches(ranks)}
    assert found["expert"] == 4
    words = " ".join(shares(ranks))
    assert all(axis in words for axis in found)


def test_the_picture_has_one_replica_and_says_what_it_hides() -> None:
    workload = workload_of("llama-3.1-405b-16k-h100")
    partial = read_layout("tp=8,pp=16,vpp=8,stages=even")
    (ranks,) = hosted(workload, complete(workload, partial))
    racks, hidden = picture(ranks)
    gpus = [gpu for rack in racks for node in rack.nodes for gpu in node.gpus]
    assert hidden == 0
    assert sum(gpu.ours for gpu in gpus) == 8 * 16
    assert {gpu.stage for gpu in gpus} == set(range(16))
    few, more = picture(ranks, most=3)
    assert sum(len(rack.nodes) for rack in few) == 3
    assert more == sum(len(rack.nodes) for rack in racks) - 3
    assert level_names(ranks) == ("node", "rack", "pod")


def test_ranks_of_a_mixed_fleet_lie_in_their_pools() -> None:
    workload = workload_of("llama-3.1-70b-512-h100-256-a100")
    partial = read_layout("tp=2,pp=6,cp=4,dp=16,stages=even")
    pools = [
        {"pool": "a100", "stages": [0, 1]},
        {"pool": "h100", "stages": [2, 3, 4, 5]},
    ]
    partial = type(partial).model_validate({**partial.given(), "pools": pools})
    first, second = hosted(workload, complete(replace(workload), partial))
    assert (first.name, first.stages, first.count) == ("a100", (0, 1), 256)
    assert (second.name, second.stages, second.count) == ("h100", (2, 3, 4, 5), 512)
    racks, _ = picture(second)
    shown = {gpu.stage for rack in racks for node in rack.nodes for gpu in node.gpus}
    assert shown == {2, 3, 4, 5}

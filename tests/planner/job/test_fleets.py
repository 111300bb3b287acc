"""Mixed fleets from a job's file to a priced layout, and what is refused on the way."""

from pathlib import Path
from typing import Any

import pytest

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.resolve import resolve
from planner.planning.explanation.changes import on_cluster, on_kernels
from planner.planning.explanation.neighbours import moved
from planner.planning.prediction.predict import complete, predict
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout
from planner.specs.layouts.layout_text import layout_rows, pools_words

HALVES = [{"pool": "a100", "stages": [0]}, {"pool": "h100", "stages": [1, 2, 3]}]
FLEET = {
    "pools": [
        {"name": "h100", "node": "dgx-h100", "nodes": 3},
        {"name": "a100", "node": "dgx-a100-80gb", "nodes": 2},
    ]
}


def job(**cluster: Any) -> Workload:
    fields = {
        "model": "llama-3-8b",
        "cluster": cluster or FLEET,
        "training": {"seq_len": 4096, "global_batch": 64},
        "framework": "megatron",
    }
    (workload,) = resolve(JobSpec.model_validate(fields), file="job", base=Path())
    return workload


def layout(**fields: Any) -> PartialLayout:
    given = {"tp": 4, "pp": 4, "zero_stage": 1, "recompute": "none", "pools": HALVES}
    return PartialLayout.model_validate(given | fields)


def test_a_fleet_knows_each_pool_and_all_its_gpus() -> None:
    workload = job()
    assert [pool.name for pool in workload.pools] == ["h100", "a100"]
    assert (workload.gpus, workload.fleet_gpus) == (40, 40)
    assert [pool.topology.cluster.gpu.name for pool in workload.pools] == [
        "h100-sxm5-80gb",
        "a100-sxm4-80gb",
    ]


def test_a_given_layout_is_completed_on_its_pools() -> None:
    """Replicas follow from the tighter pool: 24 GPUs hold 3 stages of 4 twice."""
    plan = predict(job(), layout())
    first, second = plan.layout.pools
    assert (first.tp, first.dp, second.tp, second.dp) == (4, 2, 4, 2)
    assert plan.layout.gpus == 32
    layers = plan.layout.layers_per_stage
    assert layers[0] < min(layers[1:])
    assert "uses 32 of 40 GPUs" in plan.estimate.assumptions[0]
    assert "1 nodes of a100 idle" in plan.estimate.assumptions[0]
    assert pools_words(plan.layout) == "a100 0, h100 1-3"
    assert dict(layout_rows(plan.layout))["pools"] == "ranks on a100 0, h100 1-3"


def test_one_pool_alone_is_a_cluster_of_its_own() -> None:
    alone = [{"pool": "h100", "stages": [0, 1, 2, 3]}]
    mixed = predict(job(), layout(pools=alone, dp=1, pp=4))
    plain = predict(job(node="dgx-h100", nodes=3), layout(pools=[], dp=1, pp=4))
    assert mixed.estimate.step_time_s == plain.estimate.step_time_s


def test_even_stages_are_even_in_time() -> None:
    found = complete(job(), layout(stages="even"))
    assert found.layers_per_stage[0] < found.layers_per_stage[1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pools": []}, "a mixed fleet needs the stages that each pool hosts"),
        (
            {"pools": [{"pool": "h200", "stages": [0, 1, 2, 3]}]},
            "no such pool in inline cluster; did you mean h100",
        ),
        (
            {"pools": [{"pool": "h100", "stages": [0, 1, 3]}]},
            "host stages .0, 1, 3., not 0 to 3",
        ),
        (
            {"pools": [HALVES[0] | {"tp": 2}, HALVES[1]]},
            "pool a100 has tp 2 and dp 2 of its own; megatron has the same on all",
        ),
        ({"dp": 8}, "pool a100 hosts 32 ranks on 16 GPUs"),
        ({"order": "tp-cp-ep-pp-dp"}, "stages on several pools lie outside dp"),
    ],
)
def test_layouts_that_pools_cannot_host_are_refused(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInputError, match=said):
        predict(job(), layout(**fields))


def test_pools_on_a_fleet_of_one_kind_are_refused() -> None:
    with pytest.raises(BadInputError, match="it has no pools"):
        predict(job(node="dgx-h100", nodes=4), layout())


def test_what_ifs_change_every_pool() -> None:
    workload = job()

    def slower(cluster: Any) -> Any:
        nic = cluster.nic.model_copy(update={"bandwidth": cluster.nic.bandwidth / 2})
        return type(cluster)(**(vars(cluster) | {"nic": nic}))

    there = on_cluster(workload, slower)
    for before, after in zip(workload.pools, there.pools, strict=True):
        share = before.topology.cluster.nic_share
        assert after.topology.cluster.nic_share == pytest.approx(share / 2)
    known = on_kernels(
        workload, lambda own: own.model_copy(update={"transferred": {"x": "y"}})
    )
    assert {pool.calibration.transferred["x"] for pool in known.pools} == {"y"}


def test_a_neighbour_has_each_pool_s_share_of_the_stages() -> None:
    plan = predict(job(), layout())
    twice = moved(plan.layout, pp=8)
    assert [pool.stages for pool in twice.pools] == [(0, 1), (2, 3, 4, 5, 6, 7)]
    assert moved(plan.layout, pp=2).pools == ()
    assert [p.stages for p in moved(plan.layout, tp=2).pools] == [(0,), (1, 2, 3)]


def test_pods_of_unequal_size_host_stages_where_a_layout_says_so() -> None:
    tier = {"name": "pod", "gpus": 24, "oversubscription": 7, "units": [3, 2]}
    workload = job(node="dgx-h100", nodes=5, tiers=[tier])
    pods = [{"pool": pod.name, "stages": [at]} for at, pod in enumerate(workload.pods)]
    found = predict(workload, layout(pp=2, pools=pods, dp=4))
    assert [pool.pool for pool in found.layout.pools] == [
        "pod of node 0",
        "pod of node 3",
    ]
    plain = predict(workload, layout(pp=2, pools=[], dp=4))
    assert plain.layout.pools == ()

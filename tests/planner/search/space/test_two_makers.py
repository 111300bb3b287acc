"""Pools of GPUs of two makers: no plan passes through both, and the answer says so."""

from typing import Any

import pytest

from planner import plan, predict
from planner.errors import BadInputError

RULE = "no collectives between GPUs of two makers"


def job(*nodes: str, **search: Any) -> dict[str, Any]:
    """A small model on a node of each kind, all of it limited to few layouts."""
    pools = [{"name": node, "node": node, "nodes": 1} for node in nodes]
    return {
        "model": "llama-3.1-8b",
        "cluster": {"name": "made", "pools": pools},
        "training": {"seq_len": 4096, "global_batch": 64},
        "framework": "megatron",
        "search": {"tp": 8, "cp": 1, "vpp": 1, "micro_batch": 1, **search},
    }


def test_the_best_part_of_one_maker_is_planned_with_the_reason() -> None:
    result = plan(job("dgx-h100", "dgx-a100-80gb", "hgx-mi300x"))
    makers = {
        pool.pool: pool.pool == "hgx-mi300x" for pool in result.plans[0].layout.pools
    }
    assert len(set(makers.values())) == 1
    assert result.status == "optimal"
    assert result.search.pruned[RULE] == 2 * 2 + 6
    (idle,) = (said for said in result.explanation.binding if "in service" in said)
    assert "no library of collectives joins GPUs of two makers" in idle


def test_pools_of_one_maker_are_joined() -> None:
    result = plan(job("dgx-h100", "dgx-a100-80gb", gpus=16))
    assert len(result.plans[0].layout.pools) == 2
    assert RULE not in result.search.pruned


def test_a_limit_that_needs_both_makers_is_refused() -> None:
    with pytest.raises(BadInputError, match="gpus"):
        plan(job("dgx-h100", "hgx-mi300x", gpus=16))


def test_the_verifier_refuses_a_layout_over_both() -> None:
    pools = [
        {"pool": "dgx-h100", "stages": [0]},
        {"pool": "hgx-mi300x", "stages": [1]},
    ]
    given = {
        **job("dgx-h100", "hgx-mi300x"),
        "layout": {"tp": 8, "pp": 2, "pools": pools},
    }
    with pytest.raises(BadInputError, match="GPUs of amd and nvidia: no library"):
        predict(given)

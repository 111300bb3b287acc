"""Each rule of the space: one job in which it removes, one in which it does not."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies import small_job, with_host_memory
from tiny_models import TINY_MIXTRAL

from planner.cost.estimate.host_bound import host_bound
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.search.best_first import search
from planner.search.space import context_kinds as context
from planner.search.space.space import enumerate_space
from planner.search.variant import BY_BOUND, BY_PATHS, BY_SOLVER, NO_FIT
from planner.specs.layouts.context import CP_KINDS
from planner.specs.layouts.layout import Offload
from planner.specs.search import SearchSpec

Fields = dict[str, Any]
ONE_MESH: Fields = {
    "pp": 1,
    "dp_shard": 8,
    "zero_stage": 2,
    "recompute": "none",
}
FEW: Fields = {"tp": (1, 2), "pp": (1, 2), "cp": 1, "micro_batch": 1}


def job(limits: Fields, **fields: Any) -> Pricing:
    return small_job(SearchSpec(**limits), **fields)


def offloading(*names: str, room: str = "megatron") -> Pricing:
    """The job with these categories in host memory."""
    shares = Offload(**dict.fromkeys(names, 1.0))
    return replace(job({}, name=room), offload=shares)


def removed(pricing: Pricing, rule: str) -> int:
    return enumerate_space(pricing).removed.get(rule, 0)


@pytest.mark.parametrize(
    ("rule", "where", "where_not"),
    [
        ("limit:tp", job({"tp": 1}), job({})),
        ("limit:pp", job({"pp": 1}), job({})),
        ("limit:cp", job({"cp": 1}), job({})),
        ("limit:dp", job({"dp": 8}), job({})),
        ("limit:micro_batch", job({"micro_batch": 1}), job({})),
        ("limit:zero_stage", job({"zero_stage": 0}), job({})),
        ("limit:dp_shard", job({"dp_shard": 8}), job({})),
        ("limit:sp", job({"sp": True}), job({})),
        ("limit:order", job({"order": "tp-cp-ep-dp-pp"}), job({})),
        ("limit:vpp", job({"vpp": 1}), job({})),
        ("limit:vpp or schedule", job({"schedule": "interleaved"}), job({})),
        ("limit:ep", job({"ep": 2}, config=TINY_MIXTRAL), job({})),
        ("limit:etp", job({"etp": 1}, config=TINY_MIXTRAL), job({})),
        (
            "tp leaves the scale-up domain",
            job({}, nodes=2),
            job({}),
        ),
        (
            "heads % tp",
            job({}, config={"num_attention_heads": 4, "num_key_value_heads": 4}),
            job({}),
        ),
        (
            "kv heads % tp",
            job(
                {},
                nodes=3,
                config={
                    "hidden_size": 768,
                    "num_attention_heads": 12,
                    "num_key_value_heads": 4,
                },
            ),
            job({}, nodes=3),
        ),
        ("ffn % tp", job({}, config={"intermediate_size": 1530}), job({})),
        (
            "cp above the default space",
            job({"tp": 1, "pp": 1, "micro_batch": 1}, nodes=16),
            job({"tp": 1, "pp": 1, "micro_batch": 1, "space": "full"}, nodes=16),
        ),
        ("limit:cp_kind", job({"cp_kind": "ring"}), job({})),
        (
            "heads % (tp * ulysses)",
            job({"cp_kind": "ulysses"}, config={"num_key_value_heads": 4}),
            job({"cp_kind": "ulysses"}),
        ),
        ("sequence % (tp * 2 cp)", job({}, seq_len=1000), job({})),
        (
            "more stages than layers",
            job({}, config={"num_hidden_layers": 5}),
            job({}),
        ),
        ("global batch % dp", job({}, sequences=4), job({})),
        (
            "micro-batch above the default space",
            job({}),
            job({"space": "full"}),
        ),
        (
            "tp cp dp % (ep etp)",
            job({}, config=TINY_MIXTRAL),
            job({"tp": 1, "pp": 1}, config=TINY_MIXTRAL),
        ),
        (
            "ep with tp needs sp",
            job({}, config=TINY_MIXTRAL),
            job({}, config=TINY_MIXTRAL, name="torchtitan"),
        ),
        (
            "pp inside dp needs ep * etp == tp * cp",
            job({}, config=TINY_MIXTRAL),
            job({}),
        ),
        (
            "vpp that splits the layers unevenly",
            job({}, config={"num_hidden_layers": 5}),
            job({"space": "full"}, config={"num_hidden_layers": 5}),
        ),
        ("the framework has no pipeline", job({}, name="accelerate"), job({})),
        (
            "the framework has no expert parallelism",
            job({}, config=TINY_MIXTRAL, name="accelerate"),
            job({}, config=TINY_MIXTRAL),
        ),
        (
            "ZeRO 2 and 3 need two ranks that share states",
            job({}, name="accelerate"),
            job({}, name="torchtitan"),
        ),
        (
            "cp needs ZeRO 2 or 3",
            job({"cp": 2}, name="accelerate"),
            job({"cp": 2, "zero_stage": (2, 3)}, name="accelerate"),
        ),
        (
            "replicas that tp or cp splits need shards",
            job({"tp": 2}, name="accelerate"),
            job({"tp": 8}, name="accelerate"),
        ),
        (
            "the framework has no pp with tp",
            job({"zero_stage": 1}, name="deepspeed"),
            job({"zero_stage": 1, "tp": 1}, name="deepspeed"),
        ),
        (
            "the framework has no pp with ZeRO 3",
            job({"pp": 2}, name="deepspeed"),
            job({"pp": 2, "zero_stage": 1}, name="deepspeed"),
        ),
        ("limit:recompute", job({"recompute": "full"}), job({})),
        (
            "offload of parameters needs ZeRO-3",
            offloading("parameters", room="torchtitan"),
            job({}, name="torchtitan"),
        ),
        (
            "offload of gradients needs ZeRO-2",
            offloading("gradients"),
            offloading("gradients", room="torchtitan"),
        ),
        (
            "offload of optimizer needs ZeRO-1",
            offloading("optimizer"),
            offloading("optimizer", room="torchtitan"),
        ),
        (
            "offload of activations needs pp = 1",
            offloading("activations"),
            offloading("activations", room="torchtitan"),
        ),
        (
            "offload of activations needs recompute none",
            offloading("activations"),
            offloading("optimizer"),
        ),
    ],
)
def test_a_rule_removes_where_it_should_and_not_elsewhere(
    rule: str, where: Pricing, where_not: Pricing
) -> None:
    assert removed(where, rule) > 0
    assert removed(where_not, rule) == 0


def keeps(pick: Callable[[Any], Any], **limits: Any) -> set[int]:
    """Values of a column in the space of the tiny job."""
    return {int(value) for value in pick(enumerate_space(job(limits)).meshes)}


def test_a_limit_keeps_the_values_that_it_names() -> None:
    assert keeps(lambda m: m.tp) == {1, 2, 4, 8}
    assert keeps(lambda m: m.tp, tp=(2, 8)) == {2, 8}
    assert keeps(lambda m: m.zero, zero_stage=1) == {1}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, {"ring"}),
        ({"cp_kind": "ulysses+ring"}, {"ulysses2+ring", "ulysses4+ring"}),
        ({"cp_kind": ("ulysses4+ring", "ring")}, {"ulysses4+ring", "ring"}),
        (
            {"space": "full"},
            {"ring", "all-gather", "ulysses2+ring", "ulysses4+ring"},
        ),
    ],
)
def test_kinds_of_eight_context_ranks(
    limits: Fields, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 heads of keys go to 2 or 4 ranks, not to all; whether worth it or not."""
    monkeypatch.setattr(context, "undominated", lambda rows: list(range(len(rows))))
    heads = {"num_attention_heads": 16, "num_key_value_heads": 4}
    wide = {"hidden_size": 1024, **heads}
    space = enumerate_space(job({"tp": 1, "cp": 8} | limits, config=wide))
    assert {CP_KINDS[kind] for kind in space.meshes.cp_kind} == expected


def test_offload_keeps_the_meshes_on_which_it_is_legal() -> None:
    titan = offloading("parameters", "gradients", "optimizer", room="torchtitan")
    assert set(enumerate_space(titan).meshes.zero) == {3}
    alone = enumerate_space(offloading("activations"))
    assert set(alone.meshes.pp) == {1}
    assert alone.recompute == ("none",)


def test_a_recompute_limit_that_names_no_kind_leaves_no_layout() -> None:
    space = enumerate_space(job({"recompute": "fully"}))
    assert len(space) == 0
    assert space.removed["limit:recompute"] == 3


def test_every_mesh_uses_all_gpus_and_the_whole_batch() -> None:
    meshes = enumerate_space(job({}, nodes=3, sequences=48)).meshes
    assert (meshes.tp * meshes.pp * meshes.cp * meshes.dp == 24).all()
    batch = meshes.dp * meshes.micro_batch * meshes.micro_batches
    assert (batch == 48).all()


SOLVED: Fields = {"nodes": 3, "sequences": 32, "config": {"num_hidden_layers": 15}}
"""A job whose best plan only the solver proves. [-]"""


@pytest.mark.parametrize(
    ("rule", "limits", "fields", "expected"),
    [
        (BY_BOUND, {"space": "full"}, {"nodes": 3, "sequences": 96}, True),
        (BY_BOUND, ONE_MESH, {}, False),
        (BY_PATHS, {"space": "full"}, {"nodes": 3, "sequences": 96}, True),
        (BY_PATHS, ONE_MESH, {}, False),
        pytest.param(
            *(BY_SOLVER, {"space": "full"}, SOLVED, True), marks=pytest.mark.slow
        ),
        (BY_SOLVER, ONE_MESH, {}, False),
    ],
)
def test_a_tier_rules_out_where_it_should_and_not_elsewhere(
    rule: str,
    limits: Fields,
    fields: Fields,
    expected: bool,  # noqa: FBT001
) -> None:
    common: Fields = {"tp": 1, "pp": (2, 3, 4), "cp": 1, "micro_batch": 1}
    outcome = search(job(common | limits, name="torchtitan", **fields))
    assert (outcome.pruned.get(rule, 0) > 0) is expected


def test_memory_rules_out_all_where_a_gpu_cannot_hold_the_model() -> None:
    """405B-like layers on one node: not one of the candidates fits."""
    huge = {"hidden_size": 16_384, "intermediate_size": 53_248}
    outcome = search(job(FEW, config=huge | {"num_hidden_layers": 48}))
    assert outcome.pruned[NO_FIT] == outcome.candidates > 0
    assert not outcome.ranked


def test_hosts_need_to_hold_what_one_kind_of_recompute_keeps() -> None:
    """Room for what full recompute leaves, not for what none does: full stays."""
    leaving = offloading("activations", room="accelerate")
    space = enumerate_space(leaving)
    assert {space.recompute[entry] for entry in space.menu} == {"none", "full"}
    each = [space.meshes.take(np.array([row])) for row in range(len(space.meshes))]
    most = {k: max(on_host(leaving, m, k) for m in each) for k in space.recompute}
    assert most["full"] < most["none"]
    tight = with_host_memory(leaving, most["full"])
    left = enumerate_space(tight)
    kinds = Counter(left.recompute[entry] for entry in left.menu)
    assert kinds["full"] == len(space.meshes)
    assert 0 < kinds["none"] < kinds["full"]
    (rule,) = (name for name in left.removed if name.startswith("host memory"))
    assert left.removed[rule] == kinds["full"] - kinds["none"]


def on_host(pricing: Pricing, meshes: Meshes, kind: str) -> float:
    """What a node holds of one mesh without a pipeline. [B]."""
    one = np.array([1])
    held = host_bound(
        pricing,
        meshes,
        vpp=one,
        layers=one * pricing.model.layers,
        recompute=(kind,),
        at_once=one < 0,
    )
    return float(held[0])

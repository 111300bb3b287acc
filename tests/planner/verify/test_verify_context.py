"""Groups of every kind of cp, rank by rank, over nodes, racks and pods in part."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.cost import meshes as axes
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.specs.layouts.context import PLAIN
from planner.specs.layouts.layout import Layout
from planner.verify.legality import rule_violations
from planner.verify.placement import placement_violations

STRADDLING = [
    ("dgx-h100", 6, {"tp": 4, "cp": 6, "dp": 2}, "ulysses2+ring"),
    ("dgx-h100", 6, {"tp": 4, "cp": 6, "dp": 2}, "ulysses3+ring"),
    ("dgx-h100", 6, {"tp": 16, "cp": 3, "dp": 1}, "ring"),
    ("dgx-h100", 6, {"tp": 2, "cp": 12, "pp": 2, "dp": 1}, "ulysses4+ring"),
    ("gb200-nvl72", 36, {"tp": 4, "cp": 36, "dp": 1}, "ulysses18+ring"),
    ("gb200-nvl72", 36, {"tp": 8, "cp": 6, "dp": 3}, "ulysses3+ring"),
    ("gb200-nvl72", 36, {"tp": 16, "cp": 3, "pp": 3, "dp": 1}, "all-gather"),
    ("gb200-nvl72", 36, {"tp": 2, "cp": 24, "dp": 3}, "ulysses"),
]
"""Tensor or context ranks that lie in two nodes of 8, or in two racks of 72."""
LONG = [row for row in STRADDLING[4:] if row[3] != "all-gather"]
"""Graphs of 108 and more GPUs; ranks in two racks are left to one of them."""


PODS = {"dgx-h100": 32, "gb200-nvl72": 72}
"""GPUs below one leaf: four nodes, of which the last pod has two, or a rack. [1]"""


def on(pricing: Pricing, node: str, nodes: int) -> Pricing:
    """The job on other nodes, in pods whose uplinks are 2:1."""
    tier = {"name": "pod", "gpus": PODS[node], "oversubscription": 2}
    spec = {"name": "test", "node": node, "nodes": nodes, "tiers": (tier,)}
    cluster = resolve_cluster(ClusterSpec.model_validate(spec), SHIPPED)
    return replace(pricing, topology=ClusterTopology(cluster))


def laid(degrees: dict[str, int], kind: str, order: str) -> Layout:
    shard = degrees["cp"] * degrees["dp"]
    return Layout(**degrees, dp_shard=shard, cp_kind=kind, order=order)


@pytest.mark.parametrize("order", axes.ORDERS)
@pytest.mark.parametrize(
    ("node", "nodes", "degrees", "kind"),
    [
        pytest.param(*each, marks=[pytest.mark.slow] * (each in LONG))
        for each in STRADDLING
    ],
)
def test_groups_that_straddle_a_level_are_priced_by_the_links_that_they_use(
    node: str,
    nodes: int,
    degrees: dict[str, int],
    kind: str,
    order: str,
    workload_of: Callable[..., Pricing],
) -> None:
    """Counted by where the ranks sit, and routed through the explicit graph."""
    workload = on(workload_of(), node, nodes)
    layout = laid(degrees, kind, order)
    assert layout.gpus == workload.gpus
    assert list(placement_violations(workload, layout)) == []


def test_the_inner_group_fills_a_rack_and_the_ring_joins_racks(
    workload_of: Callable[..., Pricing],
) -> None:
    """tp 4 times 18 of Ulysses are the 72 GPUs of a rack; two racks make the ring."""
    workload = on(workload_of(), "gb200-nvl72", 36)
    layout = laid({"tp": 4, "cp": 36, "dp": 1}, "ulysses18+ring", axes.ORDERS[0])
    its = Context.of(workload, Meshes.of_layout(layout))
    assert (its.ulysses.size.item(), its.ulysses.domains.item()) == (18, 1)
    assert (its.ring.size.item(), its.ring.domains.item()) == (2, 2)


@pytest.mark.parametrize("kind", [*PLAIN, "ulysses2+ring", "striped"])
def test_only_kinds_with_a_rule_of_the_verifier_are_legal(
    kind: str, workload_of: Callable[..., Pricing]
) -> None:
    """A kind that the verifier was not told of is no kind that it lets pass."""
    layout = laid({"tp": 2, "cp": 4, "dp": 2}, "ring", axes.ORDERS[0])
    other = layout.model_copy(update={"cp_kind": kind})
    said = f"no rule is known for context ranks of kind {kind}"
    sentences = {breach.sentence for breach in rule_violations(workload_of(), other)}
    assert (said in sentences) is (kind == "striped")


@pytest.mark.parametrize(
    ("mistake", "objection"),
    [("ulysses_groups", "ulysses groups: "), ("outer_context_groups", "ring groups: ")],
)
def test_a_kind_whose_parts_change_places_is_objected_to(
    mistake: str,
    objection: str,
    workload_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A ring inside of Ulysses, where Ulysses inside of a ring was planned."""
    workload = on(workload_of(), "dgx-h100", 6)
    layout = laid({"tp": 4, "cp": 6, "dp": 2}, "ulysses2+ring", axes.ORDERS[0])
    wrong = {
        "ulysses_groups": lambda t, m: axes.groups(t, m, (m.ulysses, m.tp * 3)),
        "outer_context_groups": lambda t, m: axes.groups(
            t, m, (m.cp // m.ulysses, m.tp)
        ),
    }
    monkeypatch.setattr(axes, mistake, wrong[mistake])
    found = list(placement_violations(workload, layout))
    assert found
    assert all(sentence.startswith(objection) for sentence in found)

"""Cost and energy of a step by the nodes that it takes and the time of its kernels."""

from dataclasses import replace

import pytest
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.hardware.graph.topology import ClusterTopology
from planner.planning.economics.aims import aim_of
from planner.planning.economics.money import power_w, run_cost
from planner.planning.economics.stretches import Stretch, scaled
from planner.planning.economics.terms import run_terms
from planner.planning.objectives.aimed import optimize_for
from planner.planning.optimize import optimize
from planner.search.stop import Stop
from planner.specs.economics import EconomicsSpec
from planner.specs.search import SearchSpec

RENTED = EconomicsSpec.model_validate({"price": "2.5 USD/GPU-h"})
BOUGHT = EconomicsSpec.model_validate({"price": "30 kUSD/GPU", "spare_nodes": 1})


def job() -> Pricing:
    return small_job(SearchSpec(micro_batch=1, cp=1))


def priced(own: EconomicsSpec) -> tuple[float, float, float]:
    """Energy [J] and money [USD] of one step of the fastest plan, and its tokens."""
    plan = optimize([job()], top=1).plans[0]
    tokens = float(job().sequences * job().training.seq_len)
    stretch = Stretch(job(), plan.layout, plan.estimate, tokens)
    terms, step = run_terms(job(), own), stretch.productive_s
    energy = scaled(step, power_w(stretch, terms))
    cost = run_cost([stretch], [step], terms, scaled(energy, 1 / 3.6e9), reshard=0.0)
    assert cost is not None
    return energy.value, cost.total.value, tokens


@pytest.mark.parametrize("own", [RENTED, BOUGHT], ids=["rented", "bought"])
def test_the_amount_of_a_plan_is_what_its_run_costs(own: EconomicsSpec) -> None:
    """Where all plans use all GPUs the fastest is the cheapest of a rental."""
    energy, money, tokens = priced(own)
    for name, amount in (("energy", energy), ("cost", money * 1e6)):
        aim = aim_of(name, job(), own)
        found = optimize_for(aim, [job()], stop=Stop(), top=1)
        assert found.status == "optimal"
        assert found.objective.name == name
        assert found.objective.bound == found.objective.value
        assert found.objective.value <= amount / tokens * (1 + 1e-9)
        if name == "cost" and own is RENTED:
            assert found.objective.value == pytest.approx(amount / tokens)


def test_one_power_for_all_phases_makes_the_fastest_the_leanest() -> None:
    own = EconomicsSpec.model_validate({"price": "2.5 USD/GPU-h", "power": "10 kW"})
    energy, _, tokens = priced(own)
    found = optimize_for(aim_of("energy", job(), own), [job()], stop=Stop(), top=1)
    assert found.objective.value == pytest.approx(energy / tokens)


def test_least_memory_is_reported_with_its_bound() -> None:
    aim = aim_of("memory", job(), RENTED)
    found = optimize_for(aim, [job()], stop=Stop())
    assert found.status == "optimal"
    peaks = [plan.estimate.memory.peak_device_gib.value for plan in found.plans]
    assert peaks == pytest.approx([found.objective.value] * len(peaks))
    assert found.objective.bound == found.objective.value
    fastest = optimize([job()], top=1).plans[0].estimate.memory.peak_device_gib.value
    assert found.objective.value <= fastest


def test_a_stopped_search_for_memory_claims_nothing() -> None:
    aim = aim_of("memory", job(), RENTED)
    found = optimize_for(aim, [job()], stop=Stop(deadline=0.0))
    assert found.status == "unknown"
    assert (found.objective.gap, found.objective.bound) == (1.0, 0.0)


def test_a_fleet_of_pods_is_refused_by_name() -> None:
    uneven = replace(job(), pods=(None,))  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="least cost is proven on GPUs of one kind"):
        aim_of("cost", uneven, RENTED)


def test_energy_lies_between_that_of_waiting_and_that_of_computing() -> None:
    """A share of the time in kernels, at either power, weighs both."""
    plan = optimize([job()], top=1).plans[0]
    assert 0 < plan.estimate.kernel_share < 1
    terms = run_terms(job(), RENTED)
    (node,) = terms.nodes.values()

    def watts(share: float) -> float:
        shared = plan.estimate.model_copy(update={"kernel_share": share})
        return power_w(Stretch(job(), plan.layout, shared, 1.0), terms)

    nodes = watts(1.0) / node.computing.value
    assert watts(0.0) == pytest.approx(nodes * node.waiting.value)
    own = plan.estimate.kernel_share
    mixed = own * watts(1.0) + (1 - own) * watts(0.0)
    assert watts(own) == pytest.approx(mixed)


def test_gpus_held_below_their_tdp_draw_less() -> None:
    """A node of known rating draws what its GPUs leave; all others in proportion."""
    cluster = job().topology.cluster
    limit = 0.75 * cluster.gpu.tdp
    drawn = {}
    for name, its in (
        ("free", cluster.node),
        ("held", cluster.node.model_copy(update={"power_limit": limit})),
    ):
        topology = ClusterTopology(replace(cluster, node=its))
        terms = run_terms(replace(job(), topology=topology), RENTED)
        drawn[name] = next(iter(terms.nodes.values()))
    saved = drawn["free"].rated - drawn["held"].rated
    gpus, tdp = cluster.node.gpus_per_node, cluster.gpu.tdp
    assert cluster.node.max_power is not None
    assert saved == pytest.approx(gpus * (tdp - limit))
    assert drawn["held"].idle == pytest.approx(0.75 * drawn["free"].idle)

"""From the objective of a spec to the amount that a search makes least."""

from dataclasses import replace

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.planning.economics.money import HOURS_PER_MONTH
from planner.planning.economics.terms import NodeTerms, RunTerms, run_terms
from planner.specs.aim import FASTEST, Aim
from planner.specs.economics import EconomicsSpec

FIELD = "objective"


def aim_of(objective: str, workload: Workload, economics: EconomicsSpec) -> Aim:
    """The amount of a step that an objective makes least.

    Interruptions and checkpoints are left out: they are of a run, not of a step.

    Raises:
        BadInputError: The search proves no such plan of this job.
    """
    if objective == "throughput":
        return FASTEST
    if workload.pools or workload.pods:
        raise BadInputError(
            f"least {objective} is proven on GPUs of one kind in equal pods alone; "
            "take objective out for the fastest plan of this fleet",
            field=FIELD,
            value=objective,
            allowed="throughput",
        )
    if objective == "memory":
        return replace(FASTEST, name=objective)
    terms = run_terms(workload, economics)
    (node,) = terms.nodes.values()
    energy, spec = _power(workload, node, terms), workload.topology.cluster.spec
    if objective == "energy":
        return energy
    if node.price is None:
        raise BadInputError(f"{node.told}", field=FIELD, value=objective)
    amount = node.price.per_gpu(node.gpus) * node.gpus
    if node.price.is_rate:
        rent = amount / 3600
        return _aim("cost", node, spec.in_service, terms.spare_nodes * rent, rent)
    paid = spec.in_service + terms.spare_nodes
    month = HOURS_PER_MONTH * 3600 * 1000
    owned = amount / terms.depreciation.value
    owned += node.rated * terms.colocation.value / month
    joule = terms.electricity.value / 3.6e6
    base, each = paid * owned + joule * energy.base, joule * energy.each
    return _aim("cost", node, spec.in_service, base, each, joule * energy.kernel)


def _power(workload: Workload, node: NodeTerms, terms: RunTerms) -> Aim:
    """Energy: nodes that train wait or run kernels, others that are paid for idle."""
    there = workload.topology.cluster.spec.in_service
    owned = node.price is not None and not node.price.is_rate
    idle, pue = node.idle if owned else 0.0, terms.pue.value
    base = pue * (there * idle + terms.spare_nodes * node.idle)
    each = pue * (node.waiting.value - idle)
    more = pue * (node.computing.value - node.waiting.value) / node.gpus
    return _aim("energy", node, there, base, each, more)


def _aim(
    name: str,
    node: NodeTerms,
    nodes: int,
    base: float,
    each: float,
    kernel: float = 0.0,
) -> Aim:
    """An aim whose unit is a second of the whole fleet."""
    return Aim(name, base, each, kernel, node.gpus, base + each * nodes)

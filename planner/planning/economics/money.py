"""Money and energy of the nodes that a run takes."""

from collections.abc import Callable, Sequence

from planner.planning.economics.interrupted import fleet_of
from planner.planning.economics.stretches import Stretch, scaled, summed
from planner.planning.economics.terms import NodeTerms, RunTerms
from planner.specs.answer.estimate import Interval
from planner.specs.answer.run import RunCost

HOURS_PER_MONTH = 730.5
"""[h]"""
JOULES_PER_MWH = 3.6e9
"""[J/MWh]"""


def nodes_paid(stretch: Stretch, terms: RunTerms) -> dict[str, int]:
    """Nodes whose price a stretch pays, by name.

    A rental pays for the nodes that train and for spare ones; what a layout leaves
    idle is given back. A purchase pays for every node in service. Spare nodes are of
    the first kind.
    """
    counts: dict[str, int] = {}
    for part in fleet_of(stretch):
        price = terms.nodes[part.node].price
        owned = price is not None and not price.is_rate
        counts[part.node] = part.training + (part.idle if owned else 0)
    first = next(iter(counts))
    counts[first] += terms.spare_nodes
    return counts


def power_w(stretch: Stretch, terms: RunTerms) -> float:
    """Power of the nodes that are paid for, the building's share included.

    ::

        PUE (training nodes * power + others * GPUs * idle power)
        power = waiting + share of the time in kernels * (computing - waiting)

    Returns:
        Power. [W]

    Leaves out switches and storage; interruptions are taken at full power.
    """
    total, paid = 0.0, nodes_paid(stretch, terms)
    share = stretch.estimate.kernel_share
    for part in fleet_of(stretch):
        its = terms.nodes[part.node]
        more = its.computing.value - its.waiting.value
        total += part.training * (its.waiting.value + share * more)
        total += (paid[part.node] - part.training) * its.idle
    return total * terms.pue.value


def energy_mwh(
    stretches: Sequence[Stretch],
    walls: Sequence[Interval],
    terms: RunTerms,
    *,
    reshard: float,
) -> Interval:
    """Energy of a run.

    Args:
        stretches: Parts of the run. [-]
        walls: Wall time of each part. [s]
        terms: Power. [-]
        reshard: Time between phases. [s]

    Returns:
        Power times time. [MWh]
    """
    return _over(stretches, walls, reshard, lambda s: power_w(s, terms), JOULES_PER_MWH)


def carbon_t(energy: Interval, terms: RunTerms) -> Interval:
    """Carbon dioxide of a run's electricity.

    Args:
        energy: Energy of the run. [MWh]
        terms: Carbon of electricity. [kg/kWh]

    Returns:
        Mass; a kg/kWh is a t/MWh. [t]

    Leaves out the making of the hardware.
    """
    return scaled(energy, terms.carbon.value)


def gpu_hours(
    stretches: Sequence[Stretch],
    walls: Sequence[Interval],
    terms: RunTerms,
    *,
    reshard: float,
) -> Interval:
    """GPUs that are paid for, times hours.

    Args:
        stretches: Parts of the run. [-]
        walls: Wall time of each part. [s]
        terms: Prices, which decide who pays for idle nodes. [-]
        reshard: Time between phases. [s]

    Returns:
        GPU-hours. [GPU-h]
    """

    def gpus(stretch: Stretch) -> float:
        paid = nodes_paid(stretch, terms)
        return sum(terms.nodes[name].gpus * count for name, count in paid.items())

    return _over(stretches, walls, reshard, gpus, 3600)


def run_cost(
    stretches: Sequence[Stretch],
    walls: Sequence[Interval],
    terms: RunTerms,
    energy: Interval,
    *,
    reshard: float,
) -> RunCost | None:
    """Cost of a run, by kind.

    ::

        rental    nodes * price * hours
        purchase  nodes * price * time / depreciation
                  + energy * electricity + rated kW * colocation * months

    Args:
        stretches: Parts of the run. [-]
        walls: Wall time of each part. [s]
        terms: Prices. [-]
        energy: Energy of the run. [MWh]
        reshard: Time between phases. [s]

    Returns:
        Money by kind, None where a node has no price. [USD]

    Leaves out storage, traffic out of a cloud, and people.
    """
    paid_for = nodes_paid(stretches[0], terms)
    used = [terms.nodes[name] for name, count in paid_for.items() if count]
    if any(node.price is None for node in used):
        return None
    told = "; ".join(dict.fromkeys(node.told for node in used))

    def over(a_node: Callable[[NodeTerms], float]) -> Interval:
        def rate(stretch: Stretch) -> float:
            paid = nodes_paid(stretch, terms)
            return sum(a_node(terms.nodes[name]) * n for name, n in paid.items())

        return _over(stretches, walls, reshard, rate, 1.0)

    if used[0].price is not None and used[0].price.is_rate:
        rent = over(lambda node: _amount(node) / 3600)
        return RunCost(total=rent, rental=rent, price=told)
    capital = over(lambda node: _amount(node) / terms.depreciation.value)
    month = HOURS_PER_MONTH * 3600 * 1000
    room = over(lambda node: node.rated * terms.colocation.value / month)
    power = scaled(energy, 1000 * terms.electricity.value)
    return RunCost(
        total=summed([capital, power, room]),
        capital=capital,
        electricity=power,
        colocation=room,
        price=told,
    )


def _amount(node: NodeTerms) -> float:
    """Price of a whole node. [USD/h] or [USD]."""
    assert node.price is not None
    return node.price.per_gpu(node.gpus) * node.gpus


def _over(
    stretches: Sequence[Stretch],
    walls: Sequence[Interval],
    reshard: float,
    rate: Callable[[Stretch], float],
    unit: float,
) -> Interval:
    """A rate times the time of each stretch; reshards take the last stretch's rate."""
    pairs = zip(stretches, walls, strict=True)
    parts = [scaled(wall, rate(stretch) / unit) for stretch, wall in pairs]
    more = reshard * rate(stretches[-1]) / unit
    return summed([*parts, Interval(value=more, low=more, high=more)])

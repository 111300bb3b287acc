"""Terms of a run's cost and energy: the catalog's facts, or the user's own."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.cost.workload import Workload
from planner.hardware.catalog import Cluster
from planner.hardware.prices import Quote, Running, purchase, rental, running
from planner.hardware.reading.money import Price
from planner.hardware.reliability import Interruptions, checkpoints, interruptions
from planner.specs.economics import EconomicsSpec

GIVEN = "given"
"""Source of a term that the user gave."""


@dataclass(frozen=True)
class Term:
    """A number with its source.

    Attributes:
        value: Number in the unit of its field. [-]
        source: Source of the number. [text]
    """

    value: float
    source: str


@dataclass(frozen=True)
class NodeTerms:
    """Price and power of one kind of node.

    Attributes:
        gpus: GPUs of a node. [1]
        price: Price of an hour or of owning, None where unknown. [-]
        told: The price in words, with date and source. [text]
        quotes: Quotes behind the price; a given price is one. [1]
        spread: Least and greatest quote over the price. [1]
        rated: Highest power that the node draws. [W]
        computing: Power while all GPUs of the node are in kernels. [W]
        waiting: Power while all of them wait for others. [W]
        idle: Power of the node's GPUs while they do nothing. [W]
    """

    gpus: int
    price: Price | None
    told: str
    rated: float
    computing: Term
    waiting: Term
    idle: float
    quotes: int = 0
    spread: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True)
class RunTerms:
    """Everything that a run's time, cost and energy rest on beside the step time.

    Attributes:
        nodes: Price and power of each node, by name. [-]
        depreciation: Time that a purchase is written off over. [s]
        electricity: Price of electricity. [USD/kWh]
        colocation: Price of room for a load. [USD/kW-month]
        pue: Power of the building over that of its computers. [1]
        carbon: Carbon dioxide of electricity. [kg/kWh]
        failures: Time of one GPU between interruptions. [GPU-h]
        failure_range: Value of `failures` in the worst and the best fleet seen. [GPU-h]
        hardware: Share of interruptions that take a node away. [1]
        restart: Time from an interruption to the load of a checkpoint. [s]
        repair: Time that a broken node is away, None: replaced in the restart. [s]
        spare_nodes: Nodes that wait to replace broken ones. [1]
        asynchronous: True where checkpoints are written while the run trains. [-]
        stall: Wait for a checkpoint beside its copy and, if synchronous, its write. [s]
        stall_given: Wait for any checkpoint, by the user. [s]
        copy_rate: Rate of a copy from a GPU to its host. [B/s]
        write_rate_per_gpu: Write rate to storage of each GPU. [B/s]
        write_rate: Write rate to storage of all GPUs, by the user. [B/s]
        interval: Time between checkpoints, by the user. [s]
    """

    nodes: Mapping[str, NodeTerms]
    depreciation: Term
    electricity: Term
    colocation: Term
    pue: Term
    carbon: Term
    failures: Term
    failure_range: tuple[float, float]
    hardware: Term
    restart: Term
    repair: float | None
    spare_nodes: int
    asynchronous: bool
    stall: Term
    stall_given: float | None
    copy_rate: Term
    write_rate_per_gpu: Term
    write_rate: float | None
    interval: float | None


def run_terms(workload: Workload, spec: EconomicsSpec | None = None) -> RunTerms:
    """The catalog's facts with the user's own in their place."""
    own = spec or EconomicsSpec()
    catalog = workload.topology.cluster.catalog
    facts, writes = running(catalog), checkpoints(catalog)
    seen = interruptions(catalog)
    chosen = seen.named(seen.default)
    told = f"{chosen.interruptions} in {chosen.days:g} days on {chosen.gpus:,} GPUs"
    clusters = [pool.topology.cluster for pool in workload.pools]
    return RunTerms(
        nodes=_nodes(clusters or [workload.topology.cluster], own),
        depreciation=_or(own.depreciation, facts.depreciation),
        electricity=_or(own.electricity, facts.electricity),
        colocation=_or(own.colocation, facts.colocation),
        pue=_or(own.pue, facts.pue),
        carbon=_or(own.carbon, facts.carbon),
        failures=Term(own.failures, GIVEN)
        if own.failures
        else Term(chosen.gpu_hours, f"{told}, {chosen.source}"),
        failure_range=(own.failures, own.failures) if own.failures else _range(seen),
        hardware=Term((chosen.hardware or 0) / chosen.interruptions, chosen.source),
        restart=_or(own.restart, writes.restart),
        repair=own.repair,
        spare_nodes=own.spare_nodes,
        asynchronous=own.checkpoint.writes == "asynchronous",
        stall=_or(None, writes.asynchronous_stall),
        stall_given=own.checkpoint.stall,
        copy_rate=_or(None, writes.copy_rate),
        write_rate_per_gpu=_or(None, writes.write_rate_per_gpu),
        write_rate=own.checkpoint.bandwidth,
        interval=own.checkpoint.interval,
    )


def _range(seen: Interruptions) -> tuple[float, float]:
    """GPU time between interruptions in the worst and the best fleet. [GPU-h]."""
    worst, best = (seen.named(name).gpu_hours for name in seen.range)
    return worst, best


def _or(given: float | None, fact: object) -> Term:
    """The user's number, or else a fact with its source."""
    if given is not None:
        return Term(given, GIVEN)
    value, source = getattr(fact, "value", 0.0), getattr(fact, "source", "")
    date = getattr(fact, "date", "")
    return Term(float(value), f"{date}: {source}" if date else source)


def _nodes(clusters: list[Cluster], own: EconomicsSpec) -> dict[str, NodeTerms]:
    total = sum(cluster.gpus for cluster in clusters)
    return {c.node.name: _node(c, own, total) for c in clusters}


def _node(cluster: Cluster, own: EconomicsSpec, total: int) -> NodeTerms:
    """Price and power of one kind of node."""
    node, gpu, facts = cluster.node, cluster.gpu, running(cluster.catalog)
    quote, told = _price(own, cluster, total)
    limit = min(gpu.tdp, node.power_limit or gpu.tdp)
    tdp, saved = (watts * node.gpus_per_node for watts in (limit, gpu.tdp - limit))
    ratio = facts.rated_over_tdp
    whole = node.max_power - saved if node.max_power else tdp * ratio.value
    rated = Term(whole, f"{node.name}'s datasheet")
    if node.max_power is None:
        rated = Term(rated.value, f"{ratio.value:g} x TDP, {ratio.source}")
    computing, waiting = _power(rated, tdp, facts, own)
    return NodeTerms(
        gpus=node.gpus_per_node,
        price=quote.price if quote else None,
        told=told,
        quotes=quote.quotes if quote else 0,
        spread=_spread(quote),
        rated=rated.value,
        computing=computing,
        waiting=waiting,
        idle=tdp * facts.idle_over_tdp.value,
    )


def _power(
    rated: Term, tdp: float, facts: Running, own: EconomicsSpec
) -> tuple[Term, Term]:
    """Power of a node in kernels, and while it waits; the user's own for both. [W].

    GPUs that wait draw less than their TDP; the rest of the node draws as much.
    """
    if own.power is not None:
        return Term(own.power, GIVEN), Term(own.power, GIVEN)
    drawn, waits = facts.computing_over_rated, facts.waiting_over_tdp
    computing = rated.value * drawn.value
    less = min((1 - waits.value) * tdp, computing)
    return (
        Term(computing, f"{drawn.value:g} x {rated.source}; {drawn.source}"),
        Term(computing - less, f"GPUs at {waits.value:g} x TDP; {waits.source}"),
    )


def _price(
    own: EconomicsSpec, cluster: Cluster, total: int
) -> tuple[Quote | None, str]:
    """Price in force, and the price in words with its source."""
    if isinstance(own.price, Price):
        usd, told = own.price.amount, f"{_amount(own.price)}, given"
        return Quote(
            price=own.price, low=usd, high=usd, quotes=1, date="", source=GIVEN
        ), told
    gpu, catalog = cluster.gpu.name, cluster.catalog
    if own.price == "buy":
        per_node = cluster.node.gpus_per_node
        quote = purchase(gpu, catalog, gpus=total, gpus_per_node=per_node)
        kind = "to buy, with server and fabric"
    else:
        quote, kind = rental(gpu, catalog), "on demand"
    if quote is None:
        return None, f"no price of {gpu} is known {kind}; give economics.price"
    return quote, _quoted(quote, kind)


def _spread(quote: Quote | None) -> tuple[float, float]:
    """Least and greatest quote over the price. [1]."""
    if quote is None or not quote.price.amount:
        return 1.0, 1.0
    return quote.low / quote.price.amount, quote.high / quote.price.amount


def _amount(price: Price) -> str:
    return f"{price.amount:,.10g} {price.basis}"


def _quoted(quote: Quote, kind: str) -> str:
    """A price of the catalog in words, with its date and source."""
    many = (
        f"median of {quote.quotes} quotes from {quote.low:,.4g} to {quote.high:,.4g}"
        if quote.quotes > 1
        else "one quote"
    )
    newest = "the newest from " if quote.quotes > 1 else "from "
    amount = f"{quote.price.amount:,.2f} {quote.price.basis}"
    return f"{amount} {kind}, {many}, {newest}{quote.date}: {quote.source}"

"""Assumptions of a run, in words with sources."""

from collections.abc import Sequence

from planner.planning.economics.interrupted import goodput
from planner.planning.economics.stretches import Stretch
from planner.planning.economics.terms import GIVEN, RunTerms


def assumptions(stretches: Sequence[Stretch], terms: RunTerms) -> tuple[str, ...]:
    """Every term that a run was computed with."""
    last = stretches[-1]
    good = goodput(last, terms)
    days, hours = terms.failures.value / 24, good.between / 3600
    return (
        *(
            f"{name}: {node.told}; {node.computing.value / 1000:,.2f} kW a node in "
            f"kernels ({node.computing.source}), {node.waiting.value / 1000:,.2f} kW "
            f"while it waits ({node.waiting.source})"
            for name, node in terms.nodes.items()
        ),
        *(_purchase(terms) if _owned(terms) else ()),
        f"an interruption every {days:,.0f} GPU-days ({terms.failures.source}), every "
        f"{hours:,.1f} h on {last.layout.gpus:,} GPUs",
        *_range(terms),
        f"checkpoints: {_writes(terms)}; restart {terms.restart.value:,.0f} s and the "
        f"load ({terms.restart.source})",
        _nodes_away(terms),
        f"PUE {terms.pue.value:g} ({terms.pue.source})",
        f"carbon {terms.carbon.value * 1000:.0f} g/kWh ({terms.carbon.source})",
        "intervals of time, GPU-hours, cost, energy and carbon are the step time's; "
        "prices, power and the number of interruptions a day are taken as known",
        "left out of the run: planned interruptions, evaluation, data, switches, "
        "storage, people",
    )


def _owned(terms: RunTerms) -> bool:
    prices = [node.price for node in terms.nodes.values()]
    return any(price is not None and not price.is_rate for price in prices)


def _purchase(terms: RunTerms) -> tuple[str, ...]:
    years = terms.depreciation.value / 31_557_600
    return (
        f"written off over {years:g} years ({terms.depreciation.source})",
        f"electricity {terms.electricity.value:g} USD/kWh ({terms.electricity.source})",
        f"colocation {terms.colocation.value:g} USD/kW-month of rated power "
        f"({terms.colocation.source})",
    )


def _range(terms: RunTerms) -> tuple[str, ...]:
    worst, best = (hours / 24 for hours in terms.failure_range)
    if worst == best:
        return ()
    return (
        f"bounds of the effective share are those at {worst:,.0f} and {best:,.0f} "
        "GPU-days, the worst and the best fleet of this size that is published",
    )


def _writes(terms: RunTerms) -> str:
    """Kind, wait and rate of checkpoint writes, in words."""
    kind = "asynchronous" if terms.asynchronous else "synchronous"
    per_gpu = terms.write_rate_per_gpu
    rate = f"{per_gpu.value / 1e9:g} GB/s a GPU ({per_gpu.source})"
    if terms.write_rate is not None:
        rate = f"{terms.write_rate / 1e9:,g} GB/s in all ({GIVEN})"
    if terms.stall_given is not None:
        return f"{kind}, the run waits {terms.stall_given:g} s for each; {rate}"
    waits = "" if terms.asynchronous else "and the write "
    stall = f"{terms.stall.value:g} s, a copy to the host {waits}for each"
    return f"{kind}, the run waits {stall} ({terms.stall.source}); {rate}"


def _nodes_away(terms: RunTerms) -> str:
    """Replacement of a broken node, in words."""
    if terms.repair is None:
        return "a broken node is replaced within the restart"
    spare = (
        f"{terms.spare_nodes} spare and the idle ones"
        if terms.spare_nodes
        else ("idle ones alone")
    )
    return (
        f"{terms.hardware.value:.0%} of interruptions take a node away for "
        f"{terms.repair / 3600:g} h ({terms.hardware.source}); replaced by {spare}"
    )

"""Checks that ranks fit the GPUs of one kind of node, or of the pools of a fleet."""

from planner.cost.workload import Workload
from planner.specs.layouts.layout import Layout
from planner.verify.breach import Broken


def ranks(workload: Workload, layout: Layout) -> Broken:
    """Check that the ranks fit the GPUs in service, per pool, on whole nodes."""
    if workload.pools or layout.pools:
        yield from _pools(workload, layout)
        return
    degrees = (layout.tp, layout.pp, layout.cp, layout.dp)
    if layout.gpus > workload.gpus:
        factors = " * ".join(map(str, degrees))
        yield (
            "dp",
            f"tp * pp * cp * dp = {factors} = {layout.gpus} is more than the cluster's "
            f"{workload.gpus} GPUs in service",
        )
    cluster = workload.topology.cluster
    node = cluster.node.gpus_per_node
    if layout.gpus % node and not cluster.spec.partial:
        yield "dp", f"{layout.gpus} GPUs are not whole nodes of {node}"


def _pools(workload: Workload, layout: Layout) -> Broken:
    """Check that known pools host all stages in order, on whole nodes in service."""
    if not layout.pools:
        words = "a fleet of several pools needs layout.pools: the stages of each"
        yield "pools", words
        return
    places = (*workload.pools, *workload.pods)
    known = {pool.name: pool.topology for pool in places}
    stages = [stage for pool in layout.pools for stage in pool.stages]
    names = [pool.pool for pool in layout.pools]
    if stages != list(range(layout.pp)) or len(set(names)) < len(names):
        yield (
            "pools",
            f"pools {', '.join(names)} host stages {stages}, not 0 to {layout.pp - 1}",
        )
    for pool in layout.pools:
        if pool.pool not in known:
            yield "pools", f"no pool {pool.pool!r} in the fleet of {', '.join(known)}"
            continue
        own = pool.tp or layout.tp, pool.dp or layout.dp
        same = workload.framework.limits.pool_degrees == "same"
        if same and own != (layout.tp, layout.dp):
            name = workload.framework.name
            yield (
                "pools",
                f"pool {pool.pool} has tp {own[0]} and dp {own[1]} of its own; {name} "
                f"has the same on all, {layout.tp} and {layout.dp}",
            )
        cluster = known[pool.pool].cluster
        used = layout.gpus_on(pool)
        if used > cluster.gpus:
            words = f"pool {pool.pool} hosts {used} ranks on {cluster.gpus} GPUs"
            yield "pools", words
        node = cluster.node.gpus_per_node
        if used % node and not cluster.spec.partial:
            yield "pools", f"{used} GPUs of {pool.pool} are not whole nodes of {node}"
    vendors = {known[name].cluster.gpu.vendor for name in names if name in known}
    yield from _across(layout, names, sorted(vendors))


def _across(layout: Layout, names: list[str], makers: list[str]) -> Broken:
    """Check that a pipeline can pass through several pools."""
    if len(makers) > 1:
        yield (
            "pools",
            f"pools {', '.join(names)} have GPUs of {' and '.join(makers)}: no library "
            "of collectives joins them",
        )
    if len(names) > 1 and layout.schedule == "dualpipe":
        words = "dualpipe holds every stage twice, which several pools do not"
        yield "schedule", words
    if len(names) > 1 and layout.order != "tp-cp-ep-dp-pp":
        yield "order", f"stages on several pools lie outside dp, not {layout.order}"

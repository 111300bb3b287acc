"""Combines the pools of a mixed fleet into one job."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from pydantic import ValidationError

from planner.cost.pricing import Pricing
from planner.cost.workload import Pool, Workload
from planner.errors import BadInputError, did_you_mean
from planner.hardware.catalog import Cluster, resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import Catalog
from planner.specs.layouts.layout import PoolStages
from planner.specs.reading.invalid import explained
from planner.specs.reading.read import Fields, cluster_fields


def cluster_named(given: str | Fields, base: Path, catalog: Catalog) -> Cluster:
    """The cluster of a name or path, or of inline fields.

    Raises:
        BadInputError: A field is wrong.
        ValueError: A name is unknown, or does not fit.
    """
    fields = cluster_fields(given, base, catalog) if isinstance(given, str) else given
    try:
        parsed = ClusterSpec.model_validate({"name": "inline cluster", **fields})
    except ValidationError as error:
        # resolve() names the job's file where the fields are not from another.
        its_file = str(base / given) if isinstance(given, str) else ""
        raise explained(error, ClusterSpec, file=its_file, inside="cluster") from error
    return resolve_cluster(parsed, catalog)


def mixed_fleet(cluster: Cluster, each: Sequence[Workload]) -> Workload:
    """A job on a mixed fleet, from the same job on each of its pools.

    Returns:
        The job; fields that belong to no pool in particular are the first pool's. [-]
    """
    pools = tuple(
        Pool(own.name, job.topology, job.calibration, job.framework, job.uncertainty)
        for own, job in zip(cluster.spec.pools, each, strict=True)
    )
    return replace(each[0], topology=ClusterTopology(cluster), pools=pools)


def with_pods(workload: Workload) -> Workload:
    """A job with the pods of its fleet, where pods differ in size."""
    spec, catalog = (its := workload.topology.cluster).spec, its.catalog
    units = spec.tiers[-1].units if spec.tiers else ()
    ends = list(accumulate(units))
    specs = [
        _pod(spec, end - nodes, nodes) for nodes, end in zip(units, ends, strict=True)
    ]
    pods = tuple(
        Pool(
            pod.name,
            ClusterTopology(resolve_cluster(pod, catalog)),
            workload.calibration,
            workload.framework,
            workload.uncertainty,
        )
        for pod in specs
        if pod is not None
    )
    return replace(workload, pods=pods if len(pods) > 1 else ())


def _pod(spec: ClusterSpec, first: int, nodes: int) -> ClusterSpec | None:
    """One pod as a cluster; None where the pod has no node in service."""
    dead = tuple(node - first for node in spec.dead if 0 <= node - first < nodes)
    if len(dead) == nodes:
        return None
    *inner, outer = spec.tiers
    change = {
        "name": f"{outer.name} of node {first}",
        "nodes": nodes,
        "out_of_service": dead,
        "tiers": (*inner, outer.model_copy(update={"units": ()})),
    }
    return spec.model_copy(update=change)


def on_pools(pricing: Pricing, given: Sequence[PoolStages]) -> Pricing:
    """The job on the pools that a given layout names.

    Raises:
        BadInputError: A mixed fleet without named pools, or names that it lacks.
    """
    known = [pool.name for pool in (*pricing.pools, *pricing.pods)]
    names = [pool.pool for pool in given]
    for name in names:
        if name not in known:
            near = did_you_mean(name, known) if known else "it has no pools"
            raise BadInputError(
                f"no such pool in {pricing.topology.cluster.spec.name}; {near}",
                field="layout.pools",
                value=name,
                allowed=", ".join(known) or "none",
            )
    if pricing.pools and not names:
        raise BadInputError(
            "a mixed fleet needs the stages that each pool hosts",
            field="layout.pools",
            allowed="{pool: NAME, stages: [0, ...]} for one or more of "
            + ", ".join(known),
        )
    return pricing.hosted_by(names)


def room_for(pricing: Pricing, given: Sequence[PoolStages], each: int) -> int:
    """Replicas of a pipeline that every hosting pool has room for."""
    pairs = zip(pricing.parts, given, strict=True)
    return max(min(part.gpus // (each * len(own.stages)) for part, own in pairs), 1)

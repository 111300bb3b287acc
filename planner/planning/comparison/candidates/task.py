"""A candidate as it travels: everything that planning it needs, on any machine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path

from planner.cost.workload import AnyWorkload, Workload
from planner.hardware.calibration import GpuCalibration
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.money import Price
from planner.job.calibration_file import CalibrationFile
from planner.job.resolve import resolve
from planner.planning.comparison.answer import Effort, Question
from planner.planning.comparison.store import key_of
from planner.planning.economics import RunTerms, run_terms
from planner.specs.job import JobSpec


@dataclass(frozen=True)
class Task:
    """One candidate, and the question that it answers.

    Attributes:
        name: Name of the candidate in the answer. [text]
        job: A JobSpec whose model and cluster stand in it whole. [-]
        counts: Node counts that it may have, ascending; one where it is fixed. [1]
        question: Tokens, budget, deadline. [-]
        effort: Limits of the search. [-]
        file: The user's file, for messages. [text]
        catalog: Files of facts. [-]
        source: Source of the price, if the user gave a price. [text]
        calibration: The user's calibration. [-]
        until: End of the user's time limit, by the clock of all machines; it changes
            no answer that is finished before. [s]
    """

    name: str
    job: Mapping[str, object]
    counts: tuple[int, ...]
    question: Question
    effort: Effort
    file: str
    catalog: Catalog
    source: str = ""
    calibration: CalibrationFile | None = None
    until: float = inf

    def ended(self) -> "Task":
        """The candidate after the end of the time for it."""
        return replace(self, until=0.0)

    @property
    def spec(self) -> JobSpec:
        """The job as a spec. [-]."""
        return JobSpec.model_validate(self.job)

    @property
    def cluster(self) -> Mapping[str, object]:
        """Fields of the candidate's cluster. [-]."""
        given = self.job["cluster"]
        assert isinstance(given, Mapping)
        return given

    def fields_at(self, nodes: int) -> dict[str, object]:
        """The job on another number of nodes.

        Nodes out of service and units of their own sizes belong to the number that
        the cluster has; on any other all nodes are in service.
        """
        if nodes == self.cluster.get("nodes"):
            return dict(self.job)
        tiers = [_whole(tier) for tier in _listed(self.cluster.get("tiers"))]
        changed = {"nodes": nodes, "tiers": tiers, "out_of_service": 0}
        return {**self.job, "cluster": {**self.cluster, **changed}}

    def phases(self, nodes: int) -> tuple[tuple[str, JobSpec], ...]:
        """One job for each phase of the run, on some nodes.

        Returns:
            Name of each phase, empty for a run without phases, and its job. [-]
        """
        return JobSpec.model_validate(self.fields_at(nodes)).in_phases()

    def resolved(self, job: JobSpec) -> tuple[Workload, ...]:
        """A job of this candidate, under each framework it may run under.

        Returns:
            Resolved, shape (frameworks,). [-]

        Raises:
            BadInputError: A name is unknown here, or a field is wrong.
        """
        return resolve(
            job,
            file=self.file,
            base=Path(),
            catalog=self.catalog,
            calibration=self.calibration,
        )

    def workloads(self, nodes: int) -> tuple[Workload, ...]:
        """The job of the first phase on some nodes.

        Returns:
            Resolved, shape (frameworks,). [-]

        Raises:
            BadInputError: A name is unknown here, or a field is wrong.
        """
        return self.resolved(self.phases(nodes)[0][1])

    def terms(self, workload: Workload) -> RunTerms:
        """Prices, power and interruptions on a cluster."""
        return run_terms(workload, self.spec.economics)

    @cached_property
    def smallest(self) -> Workload:
        """The job on the fewest nodes that the candidate may have. [-]."""
        return self.workloads(self.counts[0])[0]

    def price(self, nodes: int | None = None) -> Price | None:
        """Price of a GPU or a node."""
        here = self.smallest if nodes is None else self.workloads(nodes)[0]
        terms = self.terms(here)
        return terms.nodes[here.topology.cluster.node.name].price

    @property
    def key(self) -> str:
        """Digest of everything that the answer depends on: its name. [text]."""
        workload = self.smallest
        cluster = workload.topology.cluster
        facts = (cluster.node, cluster.gpu, cluster.nic, cluster.scale_up)
        told = [fact.model_dump(mode="json") for fact in facts]
        own = self.calibration
        return key_of(
            {
                "name": self.name,
                "job": self.job,
                "counts": self.counts,
                "question": self.question.model_dump(mode="json"),
                "effort": self.effort.model_dump(mode="json"),
                "source": self.source,
                "facts": told,
                "measured": _ordered(workload.calibration),
                "terms": repr(self.terms(workload)),
                "calibration": own and own.model_dump(mode="json"),
            }
        )

    def working(self, times: float) -> "Task":
        """This candidate with more work for its searches."""
        effort = self.effort.model_copy(update={"work": times * self.effort.work})
        return replace(self, effort=effort)

    def on_counts(self, *counts: int) -> "Task":
        """This candidate with other node counts to choose from."""
        return replace(self, counts=counts)


def sized(workload: AnyWorkload, nodes: int) -> AnyWorkload:
    """A job on another number of nodes, all of them in service."""
    cluster = workload.topology.cluster
    if cluster.spec.nodes == nodes:
        return workload
    tiers = [tier.model_copy(update={"units": ()}) for tier in cluster.spec.tiers]
    fewer = {"nodes": nodes, "tiers": tiers, "out_of_service": 0}
    spec = cluster.spec.model_copy(update=fewer)
    return replace(workload, topology=ClusterTopology(replace(cluster, spec=spec)))


def _ordered(measured: GpuCalibration) -> dict[str, object]:
    """Measurements ready for JSON; a set has no order of its own."""
    told: dict[str, object] = measured.model_dump(mode="json")
    return told | {"borrowed": sorted(measured.borrowed)}


def _listed(value: object) -> list[Mapping[str, object]]:
    return list(value) if isinstance(value, list | tuple) else []


def _whole(tier: Mapping[str, object]) -> dict[str, object]:
    return {**tier, "units": ()}

"""A job with everything looked up, for the cost functions to read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from hardware.calibration import GpuCalibration
from hardware.specs import GpuSpec
from hardware.topology import ClusterTopology
from planner.cost.meshes import Meshes
from planner.models.architecture import Architecture
from planner.models.asked import Asked
from planner.models.blocks import LayerKind
from planner.specs.formats import FORMAT_AXES, CommDtype
from planner.specs.framework import Framework, Recipe
from planner.specs.layout import Layout, Offload
from planner.specs.profile import Profile
from planner.specs.search import SearchSpec
from planner.specs.states import StateBytes
from planner.specs.switches import Layouts, Mask
from planner.specs.training import TrainingSpec
from planner.specs.uncertainty import UNMEASURED, Uncertainty

Hosting = tuple[str, Fraction, Fraction]
"""Name of a pool, its tp and its dp over those of the first pool. [1]"""


@dataclass(frozen=True)
class Pool:
    """One pool of a mixed fleet, with what is known of its GPU."""

    name: str
    topology: ClusterTopology
    calibration: GpuCalibration
    framework: Framework
    uncertainty: Uncertainty
    wider: Fraction = Fraction(1)
    """Tensor ranks of its stages over those of the first pool that hosts any. [1]"""
    more: Fraction = Fraction(1)
    """Replicas over those of the first pool that hosts any. [1]"""

    def mesh(self, meshes: Meshes) -> Meshes:
        """Meshes as they are on this pool, with its own tp and dp.

        Args:
            meshes: Meshes of the first pool. [-]

        Returns:
            As many meshes; a degree that is not whole is rounded down. [-]
        """
        if self.wider == self.more == 1:
            return meshes
        tp, dp = (
            column * ratio.numerator // ratio.denominator
            for column, ratio in ((meshes.tp, self.wider), (meshes.dp, self.more))
        )
        return replace(
            meshes,
            tp=tp,
            sp=meshes.sp * (tp > 1),
            dp=dp,
            dp_shard=np.maximum(meshes.dp_shard * dp // meshes.dp, 1),
            micro_batch=np.maximum(meshes.micro_batch * meshes.dp // dp, 1),
        )


@dataclass(frozen=True)
class Workload:
    """One model, one training block, one framework, one cluster: resolved."""

    model: Architecture
    training: TrainingSpec
    framework: Framework
    topology: ClusterTopology
    calibration: GpuCalibration
    search: SearchSpec = field(default_factory=SearchSpec)
    uncertainty: Uncertainty = UNMEASURED
    offload: Offload = field(default_factory=Offload)
    """Offload to host memory of the layout that is being priced."""
    pools: tuple[Pool, ...] = ()
    """The pools of a mixed fleet; none where all nodes are of one kind."""
    pods: tuple[Pool, ...] = ()
    """The pods of a fleet whose pods differ in size, each to host stages of its own."""
    hosts: tuple[Pool, ...] = ()
    """Pools that host stages, in the order in which the pipeline passes them."""
    comm_dtype: CommDtype | None = None
    """Formats in which the layout being priced sends; none: the framework's own."""
    without: frozenset[str] | None = None
    """Switches of the stack that the framework does not take with the plan being
    priced, so that they are off; none where that is not decided."""

    def under(self, layout: Layout) -> "Workload":
        """Job under a layout: with its offload, its pools and its formats on the wire.

        Args:
            layout: A complete layout. [-]

        Returns:
            The job. [-]
        """
        wanted = tuple(
            (
                pool.pool,
                Fraction(pool.tp or layout.tp, layout.tp),
                Fraction(pool.dp or layout.dp, layout.dp),
            )
            for pool in layout.pools
        )
        job = self if wanted == self._hosting else self._hosted_as(wanted)
        formats = layout.stated_formats
        where = Layouts.of(layout, self.model.mtp_layers)
        return replace(
            job,
            offload=layout.offload,
            comm_dtype=formats,
            without=self.framework.refused(where),
        )

    @property
    def _hosting(self) -> tuple[Hosting, ...]:
        """Pools that host stages, with the ratios of their degrees."""
        return tuple((pool.name, pool.wider, pool.more) for pool in self.hosts)

    def _hosted_as(self, wanted: Sequence[Hosting]) -> "Workload":
        """Job on some pools, with given ratios of their degrees."""
        job = self.hosted_by([name for name, _, _ in wanted])
        hosts = tuple(
            replace(pool, wider=wider, more=more)
            for pool, (_, wider, more) in zip(job.hosts, wanted, strict=True)
        )
        return replace(job, hosts=hosts)

    @property
    def mixed(self) -> bool:
        """Tell if the pipeline passes through several pools."""
        return len(self.hosts) > 1

    def hosted_by(self, names: Sequence[str]) -> "Workload":
        """Job on some pools of its fleet.

        Args:
            names: Pools in the order in which the pipeline passes them. [text]

        Returns:
            The job; on a single pool, the job of a cluster of one kind. [-]
        """
        if not names:
            return replace(self, hosts=())
        known = {pool.name: pool for pool in (*self.pools, *self.pods)}
        hosts = tuple(known[name] for name in names)
        if len(hosts) == 1:
            return replace(self.on(hosts[0]), pools=self.pools, hosts=hosts)
        return replace(self, hosts=hosts)

    def on(self, pool: Pool, *, shared: bool = False) -> "Workload":
        """Part of this job that one pool hosts.

        Args:
            pool: One of the job's pools. [-]
            shared: Other pools host stages, too. [bool]

        Returns:
            The job as that pool sees it. [-]
        """
        topology = pool.topology
        if shared:
            topology = ClusterTopology(topology.cluster, shared=True)
        return replace(
            self,
            topology=topology,
            calibration=pool.calibration,
            framework=pool.framework,
            uncertainty=pool.uncertainty,
            pools=(),
            pods=(),
            hosts=(),
        )

    @property
    def parts(self) -> tuple["Workload", ...]:
        """The job as each hosting pool sees it; itself where one kind hosts all."""
        if not self.mixed:
            return (self,)
        return tuple(self.on(pool, shared=True) for pool in self.hosts)

    def on_parts(self, meshes: Meshes) -> tuple[tuple["Workload", Meshes], ...]:
        """The job, and its meshes, as each hosting pool sees them.

        Args:
            meshes: Meshes of the first pool. [-]

        Returns:
            Pairs, one where one kind hosts all. [-]
        """
        if not self.mixed:
            return ((self, meshes),)
        pairs = zip(self.parts, self.hosts, strict=True)
        return tuple((part, pool.mesh(meshes)) for part, pool in pairs)

    @property
    def domain(self) -> int:
        """GPUs of a scale-up domain, the smallest of the hosting pools. [1]."""
        clusters = (part.topology.cluster for part in self.parts)
        return min(cluster.node.scale_up_domain for cluster in clusters)

    @property
    def fleet_gpus(self) -> int:
        """GPUs in service of the whole fleet, whichever of them host stages. [1]."""
        return sum(pool.topology.gpus for pool in self.pools) or self.gpus

    def sending(self, formats: CommDtype) -> "Workload":
        """Job with gradients and parameters in other formats on the wire.

        Args:
            formats: Formats of gradients and parameters on the wire. [-]

        Returns:
            The job. [-]
        """
        return replace(self, comm_dtype=formats)

    @property
    def chosen(self) -> dict[str, str]:
        """Settings, and formats on the wire, that the search chose beside the layout.

        Value by limit, for what the user or the full space leaves open. [text]
        """
        found = self.search.settings_of(self.training)
        for axis, name in FORMAT_AXES.items():
            full = self.search.space == "full" and len(self.sendable(name)) > 1
            if full or self.search.choices(axis):
                found[axis] = getattr(self.sends, name)
        return found

    @property
    def asked(self) -> Asked:
        """Facts of the job that writers of launch files are asked about."""
        return Asked(
            framework=self.framework.name,
            fields=self.model.fields,
            model=self.model,
            training=self.training,
            words=self.framework.words,
            stack=self.profile.model_dump(),
            gpus_per_node=self.topology.cluster.node.gpus_per_node,
        )

    def unwritten(self) -> "Workload":
        """Job without writers of launch files, whatever these have words for.

        Returns:
            A job of layouts that run but need not be written. [-]
        """
        if not self.framework.writers:
            return self
        return replace(self, framework=replace(self.framework, writers=()))

    @property
    def gpus(self) -> int:
        """Ranks of the cluster. [1]."""
        return self.topology.gpus

    @property
    def gpu(self) -> GpuSpec:
        """Datasheet of the GPU."""
        return self.topology.cluster.gpu

    @property
    def peak_flops(self) -> float:
        """Dense half-precision peak, against which MFU is stated. [FLOP/s]."""
        peak = self.gpu.peak_bf16 or self.gpu.peak_fp16
        assert peak is not None
        return peak

    @cached_property
    def profile(self) -> Profile:
        """The software stack in force."""
        its = self.framework.profile
        if not self.without:
            return its
        return its.model_copy(update=dict.fromkeys(self.without, False))

    def takes(self, name: str, meshes: Meshes) -> Mask:
        """Meshes on which a switch of the stack is on.

        Args:
            name: A field of the profile. [text]
            meshes: Any meshes.

        Returns:
            True where the switch is on; what schedule, chunks and recompute decide is
            in ``without``. shape (meshes,)
        """
        there = self.framework.takes(name, self.where(meshes), by_degrees=True)
        return there & (name not in (self.without or ()))

    def where(self, meshes: Meshes) -> Layouts:
        """Meshes in the words of a framework's switches.

        Args:
            meshes: Any meshes.

        Returns:
            Degrees of the meshes, with one chunk a rank and no recompute.
        """
        ones = np.ones_like(meshes.pp)
        return Layouts(
            sp=meshes.sp,
            pp=meshes.pp,
            ep=meshes.ep,
            zero=meshes.zero,
            micro_batches=meshes.micro_batches,
            chunks=ones,
            schedule=ones,
            full=ones == 0,
            predicted=self.model.mtp_layers,
        )

    @cached_property
    def recipe(self) -> Recipe:
        """The memory habits of the framework, in the formats that it sends in."""
        if self.comm_dtype is None:
            return self.framework.recipe
        return self.framework.sending(self.comm_dtype)

    @property
    def states(self) -> dict[int, StateBytes]:
        """Bytes per parameter by ZeRO stage, in the format that is computed in."""
        narrow = self.training.precision == "fp16" and self.recipe.fp16_states
        return self.recipe.states | (narrow or {})

    @property
    def replay(self) -> str:
        """Precision policy of the eager operators that are replayed. [text]."""
        if self.training.precision != "fp16":
            return self.recipe.replay
        return "none" if self.training.frozen else self.recipe.fp16_replay

    @property
    def sends(self) -> CommDtype:
        """Formats in which gradients and parameters are sent."""
        return replace(self.framework, recipe=self.recipe).own_formats

    def sendable(self, field: str) -> tuple[str, ...]:
        """Formats in which gradients or parameters can be sent, the framework's first.

        Args:
            field: ``gradients`` or ``parameters``. [text]

        Returns:
            Names of the formats. [text]
        """
        own: str = getattr(self.framework.own_formats, field)
        others = self.framework.formats.known(field, self.training.precision)
        return tuple(dict.fromkeys((own, *others)))

    @property
    def sequences(self) -> int:
        """Global batch. [sequence]."""
        return self.training.sequences

    @property
    def kinds(self) -> tuple[LayerKind, ...]:
        """Distinct layer kinds in order of first appearance."""
        return self.model.kinds

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """(index into :attr:`kinds`, layers) in model order."""
        return tuple((self.kinds.index(kind), count) for kind, count in self.model.runs)

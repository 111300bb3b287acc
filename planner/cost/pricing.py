"""A job as a layout, or a candidate of a search, has it priced."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

from planner.cost.meshes import Meshes
from planner.cost.workload import Pool, Workload
from planner.hardware.graph.topology import ClusterTopology
from planner.specs.frameworks.framework import Recipe
from planner.specs.frameworks.profile import Profile
from planner.specs.frameworks.states import StateBytes
from planner.specs.frameworks.switches import Layouts, Mask
from planner.specs.layouts.formats import FORMAT_AXES, CommDtype
from planner.specs.layouts.layout import Layout, Offload

Hosting = tuple[str, Fraction, Fraction]
"""Name of a pool, its tp and its dp over those of the first pool. [1]"""


@dataclass(frozen=True)
class Pricing(Workload):
    """A job with what a layout, or a candidate, sets for its price."""

    offload: Offload = field(default_factory=Offload)
    """Offload to host memory."""
    stage_pools: tuple[Pool, ...] = ()
    """Pools that host stages, in the order in which the pipeline passes them."""
    comm_dtype: CommDtype | None = None
    """Formats on the wire; none: the framework's own."""
    without: frozenset[str] | None = None
    """Switches of the stack that the framework does not take with the plan being
    priced, so that they are off; none where that is not decided."""

    @classmethod
    def candidate(
        cls,
        workload: Workload,
        *,
        offload: Offload | None = None,
        comm_dtype: CommDtype | None = None,
    ) -> Self:
        """Prices of a job before a layout is there, with a candidate's own settings.

        Args:
            offload: Offload of the candidate; none: all stays on the GPUs. [-]
            comm_dtype: Formats on the wire; none: the framework's own. [-]

        Returns:
            The job on its whole cluster, with all switches of its stack. [-]
        """
        job = {name.name: getattr(workload, name.name) for name in fields(Workload)}
        return cls(**job, offload=offload or Offload(), comm_dtype=comm_dtype)

    @classmethod
    def of(cls, workload: Workload, layout: Layout) -> Self:
        """Prices of a job under a layout: its offload, pools, formats and switches.

        Args:
            workload: The job; what another layout set for a price is replaced. [-]
        """
        job = workload if isinstance(workload, cls) else cls.candidate(workload)
        where = Layouts.of(layout, workload.model.mtp_layers)
        return replace(
            job.on_pools_of(layout),
            offload=layout.offload,
            comm_dtype=layout.stated_formats,
            without=workload.framework.refused(where),
        )

    def on_pools_of(self, layout: Layout) -> Self:
        """Job on the pools of a layout, with the ratios of their degrees.

        Returns:
            The job; itself where the pools are the layout's already. [-]
        """
        wanted = tuple(
            (
                pool.pool,
                Fraction(pool.tp or layout.tp, layout.tp),
                Fraction(pool.dp or layout.dp, layout.dp),
            )
            for pool in layout.pools
        )
        return self if wanted == self._hosting else self._hosted_as(wanted)

    @property
    def _hosting(self) -> tuple[Hosting, ...]:
        """Pools that host stages, with the ratios of their degrees."""
        return tuple((pool.name, pool.wider, pool.more) for pool in self.stage_pools)

    def _hosted_as(self, wanted: Sequence[Hosting]) -> Self:
        """Job on some pools, with given ratios of their degrees."""
        job = self.hosted_by([name for name, _, _ in wanted])
        hosts = tuple(
            replace(pool, wider=wider, more=more)
            for pool, (_, wider, more) in zip(job.stage_pools, wanted, strict=True)
        )
        return replace(job, stage_pools=hosts)

    @property
    def mixed(self) -> bool:
        """Tell if the pipeline passes through several pools."""
        return len(self.stage_pools) > 1

    @property
    def makers(self) -> tuple[str, ...]:
        """Makers of the GPUs that host stages, each once. [text].

        NCCL joins NVIDIA's GPUs alone, RCCL AMD's, HCCL Intel's.
        """
        gpus = (part.topology.cluster.gpu for part in self.parts)
        return tuple(dict.fromkeys(gpu.vendor for gpu in gpus))

    def hosted_by(self, names: Sequence[str]) -> Self:
        """Job on some pools of its fleet.

        Args:
            names: Pools in the order in which the pipeline passes them. [text]

        Returns:
            The job; on a single pool, the job of a cluster of one kind. [-]
        """
        if not names:
            return replace(self, stage_pools=())
        known = {pool.name: pool for pool in (*self.pools, *self.pods)}
        hosts = tuple(known[name] for name in names)
        if len(hosts) == 1:
            return replace(self.on(hosts[0]), pools=self.pools, stage_pools=hosts)
        return replace(self, stage_pools=hosts)

    def on(self, pool: Pool, *, shared: bool = False) -> Self:
        """Part of this job that one pool hosts.

        Args:
            shared: Other pools host stages, too. [bool]
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
            stage_pools=(),
        )

    @property
    def parts(self) -> tuple[Self, ...]:
        """The job as each hosting pool sees it; itself where one kind hosts all."""
        if not self.mixed:
            return (self,)
        return tuple(self.on(pool, shared=True) for pool in self.stage_pools)

    def on_parts(self, meshes: Meshes) -> tuple[tuple[Self, Meshes], ...]:
        """The job, and its meshes, as each hosting pool sees them.

        Returns:
            Pairs, one where one kind hosts all. [-]
        """
        if not self.mixed:
            return ((self, meshes),)
        pairs = zip(self.parts, self.stage_pools, strict=True)
        return tuple((part, pool.mesh(meshes)) for part, pool in pairs)

    @property
    def domain(self) -> int:
        """GPUs of a scale-up domain, the smallest of the hosting pools. [1]."""
        clusters = (part.topology.cluster for part in self.parts)
        return min(cluster.node.scale_up_domain for cluster in clusters)

    @property
    def chosen(self) -> dict[str, str]:
        """Settings, and formats on the wire, that the search chose beside the layout.

        Value by limit, for what the user or the full space leaves open. [text]
        """
        settings = self.search.settings_of(self.training)
        for axis, name in FORMAT_AXES.items():
            full = self.search.space == "full" and len(self.sendable(name)) > 1
            if full or self.search.choices(axis):
                settings[axis] = getattr(self.sends, name)
        return settings

    @cached_property
    def profile(self) -> Profile:
        """The software stack in force."""
        profile = self.framework.profile
        if not self.without:
            return profile
        return profile.model_copy(update=dict.fromkeys(self.without, False))

    def takes(self, name: str, meshes: Meshes) -> Mask:
        """Meshes on which a switch of the stack is on.

        Returns:
            True where the switch is on; what schedule, chunks and recompute decide is
            in ``without``. shape (meshes,)
        """
        there = self.framework.takes(name, self.where(meshes), by_degrees=True)
        return there & (name not in (self.without or ()))

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

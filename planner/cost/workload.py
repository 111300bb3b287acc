"""A job with everything looked up, before any layout."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Self, TypeVar

import numpy as np

from planner.cost.meshes import Meshes
from planner.hardware.calibration import GpuCalibration
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.quantities import FlopPerSecond
from planner.hardware.specs import GpuSpec
from planner.models.architecture import Architecture
from planner.models.asked import Asked
from planner.models.layers.blocks import LayerKind
from planner.specs.aim import FASTEST, Aim
from planner.specs.answer.uncertainty import UNMEASURED, Uncertainty
from planner.specs.frameworks.framework import Framework
from planner.specs.frameworks.switches import Layouts
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec


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

    @property
    def is_like_the_first(self) -> bool:
        """True where its stages have the degrees of the first pool's."""
        return self.wider == self.more == 1

    def mesh(self, meshes: Meshes) -> Meshes:
        """Meshes as they are on this pool, with its own tp and dp.

        Returns:
            As many meshes; a degree that is not whole is rounded down. [-]
        """
        if self.is_like_the_first:
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


AnyWorkload = TypeVar("AnyWorkload", bound="Workload")
"""A workload or a pricing: a change of the job gives back the type that it took."""


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
    risk: float | None = None
    """Most probability of running out of memory that a plan may have; none: the
    predicted memory is within the capacity. [1]"""
    spare: float = 0.0
    """Memory of every GPU that a plan has to leave free. [B]"""
    pools: tuple[Pool, ...] = ()
    """The pools of a mixed fleet; none where all nodes are of one kind."""
    pods: tuple[Pool, ...] = ()
    """The pods of a fleet whose pods differ in size, each to host stages of its own."""
    aim: Aim = FASTEST
    """Quantity that a search of this job makes least."""

    @property
    def fleet_gpus(self) -> int:
        """GPUs in service of the whole fleet, whichever of them host stages. [1]."""
        return sum(pool.topology.gpus for pool in self.pools) or self.gpus

    @property
    def asked(self) -> Asked:
        """Facts of the job that writers of launch files are asked about."""
        places = self.topology.cluster.pools or (self.topology.cluster,)
        return Asked(
            framework=self.framework.name,
            fields=self.model.fields,
            model=self.model,
            training=self.training,
            words=self.framework.words,
            stack=self.framework.profile.model_dump(),
            archs=frozenset(place.gpu.arch for place in places),
            gpus_per_node=gcd(*(place.node.gpus_per_node for place in places)),
        )

    def unwritten(self) -> Self:
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
    def room(self) -> float:
        """Memory of a GPU that a plan may fill. [B]."""
        return self.gpu.memory_capacity - self.spare

    @property
    def peak_flops(self) -> FlopPerSecond:
        """Dense half-precision peak, against which MFU is stated. [FLOP/s]."""
        peak = self.gpu.peak_bf16 or self.gpu.peak_fp16
        assert peak is not None
        return peak

    def at_risk_of_most(self, *, robust: bool) -> Self:
        """The job under the limit on the probability of running out of memory.

        Args:
            robust: True for the limit of the search block, False for none. [-]
        """
        return replace(self, risk=self.search.memory_risk if robust else None)

    def where(self, meshes: Meshes) -> Layouts:
        """Meshes in the words of a framework's switches.

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

    def sendable(self, field: str) -> tuple[str, ...]:
        """Formats in which gradients or parameters can be sent, the framework's first.

        Args:
            field: ``gradients`` or ``parameters``. [text]
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

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """(index into :attr:`kinds`, layers) in model order."""
        return self.model.indexed_runs

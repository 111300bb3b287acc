"""A job with everything looked up: what the cost functions read."""

from dataclasses import dataclass, field, replace

from hardware.calibration import GpuCalibration
from hardware.specs import GpuSpec
from hardware.topology import ClusterTopology
from planner.models.architecture import Architecture
from planner.models.blocks import LayerKind
from planner.specs.framework import Framework, Recipe
from planner.specs.layout import Layout, Offload
from planner.specs.profile import Profile
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec
from planner.specs.uncertainty import UNMEASURED, Uncertainty


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
    """What the layout that is being priced keeps in host memory."""

    def under(self, layout: Layout) -> "Workload":
        """The same job with what a layout keeps in host memory.

        Args:
            layout: A complete layout. [-]

        Returns:
            The job. [-]
        """
        return replace(self, offload=layout.offload)

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

    @property
    def profile(self) -> Profile:
        """The software stack in force."""
        return self.framework.profile

    @property
    def recipe(self) -> Recipe:
        """The memory habits of the framework."""
        return self.framework.recipe

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

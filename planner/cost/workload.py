"""A job with everything looked up: what the cost functions read."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from hardware.calibration import GpuCalibration
from hardware.specs import GpuSpec
from hardware.topology import ClusterTopology
from planner.models.architecture import Architecture
from planner.models.blocks import LayerKind
from planner.specs.formats import FORMAT_AXES, CommDtype
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
    comm_dtype: CommDtype | None = None
    """What the layout that is being priced sends in; none: the framework's own."""

    def under(self, layout: Layout) -> "Workload":
        """The same job with what a layout keeps in host memory, and sends in.

        Args:
            layout: A complete layout. [-]

        Returns:
            The job. [-]
        """
        formats = layout.stated_formats
        return replace(self, offload=layout.offload, comm_dtype=formats)

    def sending(self, formats: CommDtype) -> "Workload":
        """The same job with gradients and parameters in other formats on the wire.

        Args:
            formats: What they are sent in. [-]

        Returns:
            The job. [-]
        """
        return replace(self, comm_dtype=formats)

    @property
    def chosen(self) -> dict[str, str]:
        """What the search chose beside the layout: settings, and formats on the wire.

        Value by limit, for what the user or the full space leaves open. [text]
        """
        found = self.search.settings_of(self.training)
        for axis, name in FORMAT_AXES.items():
            full = self.search.space == "full" and len(self.sendable(name)) > 1
            if full or self.search.choices(axis):
                found[axis] = getattr(self.sends, name)
        return found

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

    @cached_property
    def recipe(self) -> Recipe:
        """The memory habits of the framework, in the formats that it sends in."""
        if self.comm_dtype is None:
            return self.framework.recipe
        return self.framework.sending(self.comm_dtype)

    @property
    def sends(self) -> CommDtype:
        """What gradients and parameters are sent in."""
        return replace(self.framework, recipe=self.recipe).own_formats

    def sendable(self, field: str) -> tuple[str, ...]:
        """Formats in which gradients or parameters can be sent, the own one first.

        Args:
            field: ``gradients`` or ``parameters``. [text]

        Returns:
            Their names. [text]
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

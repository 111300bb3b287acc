"""The title line: model, machine and framework of a job."""

from dataclasses import dataclass, replace

from planner import __version__
from planner.cost.workload import Workload
from planner.specs.training import TrainingSpec


@dataclass(frozen=True)
class Heading:
    """The names that a report opens with.

    Attributes:
        model: Name of the model. [-]
        on: GPUs in service and their names. [-]
        cluster: Name of the cluster. [-]
        framework: Title and version of the framework. [-]
        job: Sequence length, batch and precision in a phrase. [-]
        gpus: GPUs in service. [1]
    """

    model: str
    on: str
    cluster: str
    framework: str
    job: str
    gpus: int = 0

    def using(self, gpus: int) -> "Heading":
        """The heading of a layout that may run fewer GPUs than are in service.

        Args:
            gpus: GPUs that the layout runs. [1]
        """
        return replace(self, on=f"{gpus:,} of {self.on}") if gpus < self.gpus else self

    @property
    def line(self) -> str:
        """Model, machine, framework and job on one line. [text]."""
        return f"{self._names}; {self.job}"

    @property
    def _names(self) -> str:
        return f"{self.model} on {self.on} ({self.cluster}), {self.framework}"

    def __str__(self) -> str:
        return f"{self._names}; planner {__version__}"


def heading(workload: Workload) -> Heading:
    """The heading of a job."""
    training, framework = workload.training, workload.framework
    pools = [pool.topology for pool in workload.pools]
    places = pools or [workload.topology]
    method = f", {training.method}" if training.method != "full" else ""
    if training.reference:
        method += f", DPO with reference {training.reference}"
    return Heading(
        model=workload.model.name,
        on=" + ".join(f"{there.gpus:,} x {there.cluster.gpu.name}" for there in places),
        cluster=workload.topology.cluster.spec.name,
        framework=f"{framework.title} {framework.profile.version}",
        job=f"{_sequences(training)} ({_of_tokens(training.step_tokens)}), "
        f"{training.precision}, {training.optimizer}{method}",
        gpus=sum(there.gpus for there in places),
    )


FILLED = {
    "longest": "padded to the longest of a micro-batch",
    "max": "all padded to that",
    "packed": "packed",
}
"""Words for the filling of rows with texts. [text]"""


def _sequences(training: TrainingSpec) -> str:
    """Sequences of a step, and how texts fill them."""
    batch, most = f"{training.sequences:,}", f"{training.seq_len:,}"
    if training.draws is None:
        return f"{batch} sequences of {most} tokens a step"
    mean = f"{training.draws.mean:,.0f}"
    kind = "rows of" if training.rows == "packed" else "texts of at most"
    each = f"{mean} in the mean, {FILLED[training.rows]}"
    return f"{batch} {kind} {most} tokens a step, {each}"


def _of_tokens(tokens: float) -> str:
    scale, letter = (1e6, "M") if tokens >= 1e6 else (1e3, "k")
    return f"{tokens / scale:,.1f}{letter} tokens"

"""The title line: what was planned, on what, with what."""

from dataclasses import dataclass

from planner import __version__
from planner.cost.workload import Workload


@dataclass(frozen=True)
class Heading:
    """The names that a report opens with.

    Attributes:
        model: Name of the model. [-]
        gpus: Ranks of the cluster. [1]
        gpu: Name of one of them. [-]
        cluster: Name of the cluster. [-]
        framework: Its title and version. [-]
        job: Sequence length, batch and precision in a phrase. [-]
    """

    model: str
    gpus: int
    gpu: str
    cluster: str
    framework: str
    job: str

    def __str__(self) -> str:
        on = f"{self.gpus:,} x {self.gpu} ({self.cluster})"
        return f"{self.model} on {on}, {self.framework}; planner {__version__}"


def heading(workload: Workload) -> Heading:
    """The heading of a job.

    Args:
        workload: The job, resolved. [-]

    Returns:
        Its names. [-]
    """
    training, framework = workload.training, workload.framework
    tokens = training.sequences * training.seq_len
    method = f", {training.method}" if training.method != "full" else ""
    return Heading(
        model=workload.model.name,
        gpus=workload.gpus,
        gpu=workload.gpu.name,
        cluster=workload.topology.cluster.spec.name,
        framework=f"{framework.title} {framework.profile.version}",
        job=f"{training.sequences:,} sequences of {training.seq_len:,} tokens a step "
        f"({tokens / 1e6:,.1f}M tokens), {training.precision}, {training.optimizer}"
        f"{method}",
    )

"""The title line: model, machine and framework of a job."""

from dataclasses import dataclass

from planner import __version__
from planner.cost.workload import Workload


@dataclass(frozen=True)
class Heading:
    """The names that a report opens with.

    Attributes:
        model: Name of the model. [-]
        on: GPUs in service and their names. [-]
        cluster: Name of the cluster. [-]
        framework: Title and version of the framework. [-]
        job: Sequence length, batch and precision in a phrase. [-]
    """

    model: str
    on: str
    cluster: str
    framework: str
    job: str

    def __str__(self) -> str:
        on = f"{self.on} ({self.cluster})"
        return f"{self.model} on {on}, {self.framework}; planner {__version__}"


def heading(workload: Workload) -> Heading:
    """The heading of a job.

    Args:
        workload: The job, resolved. [-]

    Returns:
        Names of the job. [-]
    """
    training, framework = workload.training, workload.framework
    tokens = training.sequences * training.seq_len
    pools = [pool.topology for pool in workload.pools]
    places = pools or [workload.topology]
    method = f", {training.method}" if training.method != "full" else ""
    method += f", DPO with reference {training.reference}" * bool(training.reference)
    return Heading(
        model=workload.model.name,
        on=" + ".join(f"{there.gpus:,} x {there.cluster.gpu.name}" for there in places),
        cluster=workload.topology.cluster.spec.name,
        framework=f"{framework.title} {framework.profile.version}",
        job=f"{training.sequences:,} sequences of {training.seq_len:,} tokens a step "
        f"({_of_tokens(tokens)}), {training.precision}, {training.optimizer}"
        f"{method}",
    )


def _of_tokens(tokens: int) -> str:
    scale, letter = (1e6, "M") if tokens >= 1e6 else (1e3, "k")
    return f"{tokens / scale:,.1f}{letter} tokens"

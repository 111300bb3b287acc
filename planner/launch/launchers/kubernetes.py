"""Kubernetes: a Kubeflow Trainer v2 TrainJob, and the same as a plain JobSet."""

from typing import Any

from planner.launch.brief import Brief, LaunchFile, Program
from planner.launch.target import Launcher
from planner.specs.escape import yaml_text

TRAIN_JOB, JOB_SET = "trainjob.yaml", "jobset.yaml"
RESOURCE = {
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "intel": "habana.ai/gaudi",
}
"""What a device plugin calls a GPU. [text]"""
IMAGE = "IMAGE"
FOLDER = "/plan"
"""Where the launch folder is mounted in a container. [text]"""


def write(brief: Brief, program: Program) -> tuple[LaunchFile, ...]:
    """A TrainJob for clusters with Kubeflow Trainer, a JobSet for those without.

    Args:
        brief: The plan. [-]
        program: What the nodes run. [-]

    Returns:
        Both objects. [-]
    """
    del program
    return (
        LaunchFile(TRAIN_JOB, yaml_text(_train_job(brief), _HEAD_TRAIN)),
        LaunchFile(JOB_SET, yaml_text(_job_set(brief), _HEAD_SET)),
    )


_HEAD_TRAIN = (
    "Kubeflow Trainer v2 (trainer.kubeflow.org/v1alpha1). Fill in the image, and",
    "mount this folder at /plan, for example from a ConfigMap or a shared volume;",
    "NCCL wants more than the 64 MB that /dev/shm has by default: the runtime's",
    "pods need an emptyDir in memory there, as jobset.yaml has it.",
)
_HEAD_SET = (
    "JobSet v1alpha2, one pod per node. Fill in the image, and mount this folder at",
    "/plan, for example from a ConfigMap or a shared volume.",
)


def _resources(brief: Brief) -> dict[str, Any]:
    name = RESOURCE.get(brief.cluster.gpu.vendor, "nvidia.com/gpu")
    return {"limits": {name: brief.gpus_per_node}}


def _train_job(brief: Brief) -> dict[str, Any]:
    """The runtime sets PET_* as torchrun reads them; launch.sh takes them over."""
    script = (
        'NNODES="$PET_NNODES" NODE_RANK="$PET_NODE_RANK" '
        'MASTER_ADDR="$PET_MASTER_ADDR" MASTER_PORT="$PET_MASTER_PORT" '
        f"{FOLDER}/launch.sh"
    )
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": brief.job},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "image": IMAGE,
                "numNodes": brief.nodes,
                "numProcPerNode": brief.gpus_per_node,
                "resourcesPerNode": _resources(brief),
                "command": ["bash", "-c", script],
            },
        },
    }


def _job_set(brief: Brief) -> dict[str, Any]:
    """One indexed job; the index of a pod is the rank of its node."""
    container = {
        "name": "train",
        "image": IMAGE,
        "command": [
            "bash",
            "-c",
            f'NODE_RANK="$JOB_COMPLETION_INDEX" {FOLDER}/launch.sh',
        ],
        "env": [
            {"name": "NNODES", "value": str(brief.nodes)},
            {"name": "MASTER_ADDR", "value": f"{brief.job}-node-0-0.{brief.job}"},
        ],
        "resources": _resources(brief),
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    job = {
        "parallelism": brief.nodes,
        "completions": brief.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"spec": pod},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": brief.job},
        "spec": {
            "network": {"enableDNSHostnames": True},
            "replicatedJobs": [
                {"name": "node", "replicas": 1, "template": {"spec": job}}
            ],
        },
    }


def start(brief: Brief) -> str:
    """The command that creates the job.

    Args:
        brief: The plan. [-]

    Returns:
        A shell line. [text]
    """
    del brief
    return f"kubectl apply -f {TRAIN_JOB}    # or {JOB_SET} without Kubeflow Trainer"


KUBERNETES = Launcher(
    name="kubernetes",
    title="Kubernetes",
    version="Kubeflow Trainer 2, JobSet v1alpha2",
    write=write,
    start=start,
)
"""Kubeflow Trainer and JobSet."""

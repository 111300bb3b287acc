"""Kubernetes: a Kubeflow Trainer v2 TrainJob, and a plain JobSet of the same run."""

from collections.abc import Sequence
from typing import Any

from planner.launch.brief import Brief, LaunchFile, Program
from planner.launch.target import Launcher
from planner.specs.reading.escape import yaml_text

TRAIN_JOB, JOB_SET = "trainjob.yaml", "jobset.yaml"
RESOURCE = {
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "intel": "habana.ai/gaudi",
}
"""Resource name of a GPU in a device plugin, by vendor. [text]"""
IMAGE = "IMAGE"
FOLDER = "/plan"
"""Path at which the launch folder is mounted in a container. [text]"""
COPY = "/tmp/plan"  # noqa: S108  # in the container's own file system
"""Path of a pod's copy: a ConfigMap is read-only, and its files cannot run. [text]"""
RDMA = {
    "infiniband": "rdma/rdma_shared_device_a",
    "roce": "rdma/rdma_shared_device_a",
    "efa": "vpc.amazonaws.com/efa",
}
"""Resource name of the NICs in a device plugin, by fabric. [text]

Source: examples of NVIDIA's Network Operator; the EFA plugin."""


def write(brief: Brief, program: Program) -> tuple[LaunchFile, ...]:
    """Write a TrainJob for clusters with Kubeflow Trainer, a JobSet for other clusters.

    Args:
        brief: The plan. [-]
        program: Program that the nodes run. [-]

    Returns:
        Both objects. [-]
    """
    names = [*(file.name for file in program.files), "launch.sh", "check.sh"]
    head = (*_HEAD, *_config_map(brief, names), *(_NICS if _nics(brief) else ()))
    return (
        LaunchFile(TRAIN_JOB, yaml_text(_train_job(brief), (*_HEAD_TRAIN, *head))),
        LaunchFile(JOB_SET, yaml_text(_job_set(brief, names), (*_HEAD_SET, *head))),
    )


_HEAD_TRAIN = (
    "Kubeflow Trainer v2 (trainer.kubeflow.org/v1alpha1).",
    "The runtime's pods need the volumes of jobset.yaml: this folder at /plan,",
    "and memory at /dev/shm, of which NCCL wants more than the usual 64 MB.",
)
_HEAD_SET = ("JobSet v1alpha2, one pod per node.",)
_HEAD = (
    "Fill in the image. CHECKPOINTS and DATA_PATH are paths of a shared volume of",
    "yours. The pods read this folder from a ConfigMap, made beforehand with",
)
_NICS = (
    "The NICs are a resource whose name is your device plugin's; `kubectl describe",
    "node` lists it.",
)


def _config_map(brief: Brief, names: Sequence[str]) -> tuple[str, ...]:
    """Lines of the command that makes the ConfigMap."""
    files = [f"    --from-file={_key(n)}={n}" for n in names]
    lines = [f"  kubectl create configmap {brief.job}", *files]
    return (*(f"{line} \\" for line in lines[:-1]), lines[-1])


def _key(name: str) -> str:
    """Key of a file in a ConfigMap, which allows no slash. [text]."""
    return name.replace("/", "--")


def _nics(brief: Brief) -> dict[str, int]:
    """NIC resources of a pod; empty on one node, or where the plugin is unknown."""
    node = brief.cluster.node
    name = RDMA.get(brief.cluster.nic.fabric or "")
    if name is None or brief.nodes == 1:
        return {}
    return {name: node.nics_per_node if name.endswith("efa") else 1}


def _resources(brief: Brief) -> dict[str, Any]:
    name = RESOURCE.get(brief.cluster.gpu.vendor, "nvidia.com/gpu")
    return {"limits": {name: brief.gpus_per_node, **_nics(brief)}}


def _script(variables: str) -> str:
    """Shell line of a pod, which starts launch.sh in a writable copy of the folder."""
    copied = f"mkdir -p {COPY} && cp -rL {FOLDER}/* {COPY}/"
    return f"{copied} && {variables} bash {COPY}/launch.sh"


def _train_job(brief: Brief) -> dict[str, Any]:
    """TrainJob; launch.sh takes over the PET_* variables that the runtime sets."""
    script = _script(
        'NNODES="$PET_NNODES" NODE_RANK="$PET_NODE_RANK" '
        'MASTER_ADDR="$PET_MASTER_ADDR" MASTER_PORT="$PET_MASTER_PORT"'
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


def _job_set(brief: Brief, names: Sequence[str]) -> dict[str, Any]:
    """JobSet of one indexed job; the index of a pod is the rank of its node."""
    container: dict[str, Any] = {
        "name": "train",
        "image": IMAGE,
        "command": ["bash", "-c", _script('NODE_RANK="$JOB_COMPLETION_INDEX"')],
        "env": [
            {"name": "NNODES", "value": str(brief.nodes)},
            {"name": "MASTER_ADDR", "value": f"{brief.job}-node-0-0.{brief.job}"},
        ],
        "resources": _resources(brief),
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
            {"name": "plan", "mountPath": FOLDER, "readOnly": True},
        ],
    }
    if _nics(brief):
        # Memory that a NIC reads is locked.
        container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "plan", "configMap": _mounted(brief, names)},
        ],
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


def _mounted(brief: Brief, names: Sequence[str]) -> dict[str, Any]:
    """Volume of the launch folder, with every file at its path in the folder."""
    items = [{"key": _key(name), "path": name} for name in names]
    return {"name": brief.job, "items": items}


def start(brief: Brief) -> str:
    """Command that creates the job.

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

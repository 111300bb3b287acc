"""Kubernetes: a Kubeflow Trainer v2 TrainJob, and a plain JobSet of the same run."""

from collections.abc import Sequence
from typing import Any

from planner.hardware.reading.escape import yaml_text
from planner.launch.brief import Brief, LaunchFile, Program
from planner.launch.placement import Nodes
from planner.launch.target import Launcher
from planner.launch.text.nodes import placement_files

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
LABEL = "planner-pool"
"""Label of a node that names its pool. [text]"""
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

    A plan on pools is a JobSet alone, with a job of pods for each pool: all nodes of a
    TrainJob are alike.
    """
    scripts = ("launch.sh", "check.sh", *(f.name for f in placement_files(brief)))
    names = [*(file.name for file in program.files), *scripts]
    nics = any(_nics(brief, its) for its in brief.placement)
    head = (*_HEAD, *_config_map(brief, names), *(_NICS if nics else ()))
    own = (*_HEAD_SET, *(_HEAD_POOLS if brief.layout.pools else ()), *head)
    job_set = LaunchFile(JOB_SET, yaml_text(_job_set(brief, names), own))
    if brief.layout.pools:
        return (job_set,)
    text = yaml_text(_train_job(brief), (*_HEAD_TRAIN, *head))
    return LaunchFile(TRAIN_JOB, text), job_set


_HEAD_TRAIN = (
    "Kubeflow Trainer v2 (trainer.kubeflow.org/v1alpha1).",
    "The runtime's pods need the volumes of jobset.yaml: this folder at /plan,",
    "and memory at /dev/shm, of which NCCL wants more than the usual 64 MB.",
)
_HEAD_SET = ("JobSet v1alpha2, one pod per node.",)
_HEAD_POOLS = (
    f"Label the nodes of each pool first: kubectl label node NAME {LABEL}=POOL, with",
    "the names under nodeSelector.",
)
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


def _nics(brief: Brief, its: Nodes) -> dict[str, int]:
    """NIC resources of a pod; empty on one node, or where the plugin is unknown."""
    name = RDMA.get(its.cluster.nic.fabric or "")
    if name is None or brief.nodes == 1:
        return {}
    return {name: its.cluster.node.nics_per_node if name.endswith("efa") else 1}


def _resources(brief: Brief, its: Nodes) -> dict[str, Any]:
    name = RESOURCE.get(its.cluster.gpu.vendor, "nvidia.com/gpu")
    return {"limits": {name: its.gpus, **_nics(brief, its)}}


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
                "resourcesPerNode": _resources(brief, brief.placement[0]),
                "command": ["bash", "-c", script],
            },
        },
    }


def _job_set(brief: Brief, names: Sequence[str]) -> dict[str, Any]:
    """JobSet of an indexed job for each pool; pods are numbered as their nodes are."""
    jobs = [
        {"name": _job_name(its), "replicas": 1, "template": {"spec": spec}}
        for its in brief.placement
        for spec in [_job(brief, its, names)]
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": brief.job},
        "spec": {"network": {"enableDNSHostnames": True}, "replicatedJobs": jobs},
    }


def _job_name(its: Nodes) -> str:
    """Name of the job of some nodes, after their first rank. [text]."""
    return f"node-{its.first}" if its.pool else "node"


def _job(brief: Brief, its: Nodes, names: Sequence[str]) -> dict[str, Any]:
    """Job of the nodes of one pool."""
    first, index = _job_name(brief.placement[0]), "$JOB_COMPLETION_INDEX"
    rank = f"$(({its.first} + JOB_COMPLETION_INDEX))" if its.first else index
    container: dict[str, Any] = {
        "name": "train",
        "image": IMAGE,
        "command": ["bash", "-c", _script(f'NODE_RANK="{rank}"')],
        "env": [
            {"name": "NNODES", "value": str(brief.nodes)},
            {"name": "MASTER_ADDR", "value": f"{brief.job}-{first}-0-0.{brief.job}"},
        ],
        "resources": _resources(brief, its),
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
            {"name": "plan", "mountPath": FOLDER, "readOnly": True},
        ],
    }
    if _nics(brief, its):
        # Memory that a NIC reads is locked.
        container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "plan", "configMap": _mounted(brief, names)},
        ],
    }
    if its.pool:
        pod["nodeSelector"] = {LABEL: its.slug}
    return {
        "parallelism": its.count,
        "completions": its.count,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"spec": pod},
    }


def _mounted(brief: Brief, names: Sequence[str]) -> dict[str, Any]:
    """Volume of the launch folder, with every file at its path in the folder."""
    items = [{"key": _key(name), "path": name} for name in names]
    return {"name": brief.job, "items": items}


def start(brief: Brief) -> str:
    """Command that creates the job."""
    if brief.layout.pools:
        return f"kubectl apply -f {JOB_SET}"
    return f"kubectl apply -f {TRAIN_JOB}    # or {JOB_SET} without Kubeflow Trainer"


KUBERNETES = Launcher(
    name="kubernetes",
    title="Kubernetes",
    version="Kubeflow Trainer 2, JobSet v1alpha2",
    write=write,
    start=start,
)
"""Kubeflow Trainer and JobSet."""

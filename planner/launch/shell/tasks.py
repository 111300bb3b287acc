"""Nodes and GPUs of a run: by its starter, by the scheduler, by the script's head."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

HEAD = re.compile(r"^#SBATCH[ \t]+(.*?)(?:[ \t]+#.*)?$", re.MULTILINE)
_NAMES = {
    "-N": "nodes",
    "--nodes": "nodes",
    "--nnodes": "nodes",
    "--num_nodes": "nodes",
    "--num_machines": "machines",
    "-n": "tasks",
    "-np": "tasks",
    "--np": "tasks",
    "--ntasks": "tasks",
    "--num_processes": "ranks",
    "--ntasks_per_node": "tasks_per_node",
    "-G": "gpus",
    "--gpus": "gpus",
    "--gpus_per_node": "gpus_per_node",
    "--gres": "gpus_per_node",
    "--gpus_per_task": "gpus_per_task",
    "--nproc_per_node": "ranks_per_node",
    "--num_gpus": "ranks_per_node",
}
"""Counts by option of Slurm, mpirun, torchrun, DeepSpeed and accelerate. [text]"""
_NODES = r"(\d{1,6})(?::\1)?"
"""Number of nodes, or torchrun's least and most where these are one. [text]"""
_STARTED = ("nodes", "ranks", "ranks_per_node")
Counts = Mapping[str, int]


def head_of(text: str) -> list[str]:
    """Words of the head of a Slurm script. [text]."""
    return [word for line in HEAD.findall(text) for word in line.split()]


def counted(words: Sequence[str], *, starter: bool = False) -> dict[str, int]:
    """Counts that options give.

    Args:
        words: Options with their values. [text]
        starter: True for options of what starts the ranks, which has few. [-]
    """
    found: dict[str, int] = {}
    for name, value in _options(words):
        kind = _NAMES.get(name)
        number = re.fullmatch(r"(?:gpu:)?(?:[A-Za-z][\w.-]*:)?(\d{1,6})", value)
        number = number or re.fullmatch(_NODES, value)
        if name == "--gres" and not value.startswith("gpu"):
            continue
        if number and kind and (not starter or kind in _STARTED):
            found[kind] = int(number[1])
    return found


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        short = re.fullmatch(r"(-[NnG])(\d+)", word)
        if short:
            yield short[1], short[2]
        elif name.startswith("-"):
            head = re.match(r"-+", name)
            dashes = head[0] if head else ""
            plain = dashes + name[len(dashes) :].replace("-", "_")
            yield plain, value if equals else following


def slurm_variables(counts: Counts) -> dict[str, str]:
    """Variables that Slurm sets in a job of these counts.

    References:
        sbatch(1), output environment variables.
    """
    its = dict(counts)
    if "nodes" in its and "tasks_per_node" in its:
        its.setdefault("tasks", its["nodes"] * its["tasks_per_node"])
    given = {
        "SLURM_NNODES": its.get("nodes"),
        "SLURM_JOB_NUM_NODES": its.get("nodes"),
        "SLURM_NTASKS": its.get("tasks"),
        "SLURM_NPROCS": its.get("tasks"),
        "SLURM_NTASKS_PER_NODE": its.get("tasks_per_node"),
        "SLURM_GPUS_ON_NODE": its.get("gpus_per_node"),
        "SLURM_GPUS_PER_NODE": its.get("gpus_per_node"),
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def open_nodes(words: Sequence[str]) -> tuple[str, str]:
    """Option for the nodes whose value is no number, and the value; else empty."""
    said = ((n, v) for n, v in _options(words) if n in ("--nnodes", "--num_nodes"))
    return next(((n, v) for n, v in said if not re.fullmatch(_NODES, v)), ("", ""))


def ranks_of(starter: Counts, around: Counts) -> int:
    """Ranks of a run; 0 where the files do not say them."""
    if "ranks" in starter:
        return starter["ranks"]
    each, nodes = starter.get("ranks_per_node"), starter.get("nodes")
    if each:
        return each * (nodes or 1)
    nodes = nodes or around.get("nodes", 0)
    per_node = around.get("gpus_per_node")
    if not per_node and "gpus_per_task" in around:
        per_node = around["gpus_per_task"] * around.get("tasks_per_node", 1)
    if nodes and per_node:
        return nodes * per_node
    if "gpus" in around:
        return around["gpus"]
    tasks = around.get("tasks", 0)
    if per_node and tasks <= 1:
        return per_node
    # One task without a count of GPUs starts as many ranks as it sees GPUs.
    return tasks if tasks > 1 else (nodes or 0) * around.get("tasks_per_node", 0)


def nodes_of(starter: Counts, around: Counts) -> int:
    """Nodes of a run; 0 where the files do not say them."""
    return starter.get("nodes") or around.get("nodes", 0)

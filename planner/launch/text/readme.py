"""README of a launch folder: plan, prediction and checks."""

from collections import Counter
from collections.abc import Sequence

from planner.launch.brief import Brief, LaunchFile, Program
from planner.launch.target import Launcher, Target
from planner.launch.text.nodes import NODES, PLACE
from planner.launch.text.render import render
from planner.specs.layouts.layout_text import field_rows

WHAT = {
    "launch.sh": "starts the ranks of one node",
    "check.sh": "20 steps, for `planner validate --log`",
    "plan.json": "the plan: `planner emit` writes this folder from it",
    NODES: "pool of each node, in the order of ranks; yours: the hosts",
    PLACE: "the row of a node in nodes.txt, and a check of its GPUs",
    "job.sbatch": "submits the run to Slurm",
    "run.sh": "starts launch.sh on every host of a file, over ssh",
    "trainjob.yaml": "the run for Kubeflow Trainer",
    "jobset.yaml": "the run as a JobSet",
}
"""Description of a file by name; other files give a comment at the top. [text]"""


def readme(
    brief: Brief,
    program: Program,
    target: Target,
    launcher: Launcher | None,
    files: Sequence[LaunchFile],
) -> str:
    """Write the README of a launch folder.

    Args:
        brief: The plan. [-]
        program: Program that the nodes run. [-]
        target: Target that the folder is for. [-]
        launcher: Launcher that starts the program on the nodes, or None. [-]
        files: The other files of the folder. [-]
    """
    title = f"{target.title} {target.version}"
    if launcher:
        title += f", started by {launcher.title}"
    return render(
        "README.md.j2",
        **_numbers(brief),
        model=brief.model.get("name", brief.job),
        gpus=_gpus(brief),
        version=brief.versions.get("planner", ""),
        target=title,
        name=launcher.name if launcher else target.name,
        sequences=f"{brief.training.sequences:,}",
        seq_len=f"{brief.training.seq_len:,}",
        precision=brief.training.precision,
        optimizer=brief.training.optimizer,
        method=brief.training.method,
        axes=field_rows(brief.layout),
        start=launcher.start(brief) if launcher else _start(brief),
        blanks=program.blanks,
        requirements=program.versions,
        first=program.first,
        files=[(file.name, _what(file)) for file in files],
        told=brief.told,
        assumptions=brief.estimate.assumptions,
    )


def _gpus(brief: Brief) -> str:
    """GPUs of the plan by kind. [text]."""
    counts = Counter[str]()
    for its in brief.placement:
        counts[its.cluster.gpu.name] += its.ranks
    return " + ".join(f"{count:,} x {name}" for name, count in counts.items())


def _numbers(brief: Brief) -> dict[str, str]:
    """Predicted numbers as the README shows them."""
    its, memory = brief.estimate, brief.estimate.memory
    step, device = its.step_time_s, memory.peak_device_gib
    return {
        "step": f"{step.value:.3f}",
        "low": f"{step.low:.3f}",
        "high": f"{step.high:.3f}",
        "tokens": f"{its.tokens_per_s:,.0f}",
        "mfu": f"{its.mfu.full_attention:.1%}",
        "memory": f"{device.value:.1f}",
        "memory_low": f"{device.low:.1f}",
        "memory_high": f"{device.high:.1f}",
        "capacity": f"{memory.capacity_gib:.1f}",
        "verdict": memory.verdict,
    }


def _start(brief: Brief) -> str:
    if brief.nodes == 1:
        return "./launch.sh"
    if brief.layout.pools:
        return f"./launch.sh    # on every node, with its host in {NODES}"
    return "NODE_RANK=0 MASTER_ADDR=first-host ./launch.sh    # so on every node"


def _what(file: LaunchFile) -> str:
    """Description of a file: by name, else the first comment of the file."""
    if file.name in WHAT:
        return WHAT[file.name]
    for line in file.text.splitlines():
        text = line.strip().strip("\"'")
        if line.startswith("#!") or not text:
            continue
        return text.lstrip("#/ ").rstrip(".") if line[0] in "#\"'" else "settings"
    return "settings"

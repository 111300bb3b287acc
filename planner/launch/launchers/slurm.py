"""Slurm: one task per node, in the order of the network."""

from planner.launch.brief import Brief, LaunchFile, Program
from planner.launch.render import render
from planner.launch.target import Launcher

SCRIPT = "job.sbatch"


def write(brief: Brief, program: Program) -> tuple[LaunchFile, ...]:
    """A batch script that starts launch.sh once on every node.

    Ranks follow the node list, which Slurm's topology plugin sorts by switch, so that
    neighbours in rank are neighbours in the network: ``--switches`` asks for as few
    leaf units as the nodes fill, and a file of host names overrides the order.

    Args:
        brief: The plan. [-]
        program: What the nodes run. [-]

    Returns:
        The script. [-]
    """
    del program
    text = render(
        "job.sbatch.j2",
        job=brief.job,
        nodes=brief.nodes,
        gpus_per_node=brief.gpus_per_node,
        units=leaf_units(brief),
        unit=brief.cluster.spec.tiers[0].name if brief.cluster.spec.tiers else "",
        layout=brief.layout,
    )
    return (LaunchFile(SCRIPT, text, executable=True),)


def leaf_units(brief: Brief) -> int:
    """Fewest units of the innermost tier that hold the nodes of a plan.

    Args:
        brief: The plan. [-]

    Returns:
        Units; 0 where the cluster has no tier, or one unit holds one node. [1]
    """
    tiers = brief.cluster.spec.tiers
    if not tiers or tiers[0].gpus <= brief.gpus_per_node:
        return 0
    return -(-brief.layout.gpus // tiers[0].gpus)


def start(brief: Brief) -> str:
    """The command that submits the job.

    Args:
        brief: The plan. [-]

    Returns:
        A shell line. [text]
    """
    del brief
    return f"sbatch {SCRIPT}"


SLURM = Launcher(
    name="slurm", title="Slurm", version="22.05 and later", write=write, start=start
)
"""Slurm batch scripts."""

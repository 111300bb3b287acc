"""Slurm: one task per node, in the order of the network."""

from planner.launch.brief import Brief, LaunchFile, Program
from planner.launch.target import Launcher
from planner.launch.text.render import render

SCRIPT = "job.sbatch"
CORES = 8
"""CPU cores for one rank: as many as OMP_NUM_THREADS. [1]"""
HOUR, MINUTES_10 = 3600, 600
START = 1800.0
"""Time for containers, imports, compilation and the first step. [s]"""
LONGEST = 7 * 24 * HOUR
"""Longest job that is asked for: clusters seldom allow more. [s]"""


def write(brief: Brief, program: Program) -> tuple[LaunchFile, ...]:
    """Write a batch script that starts launch.sh once on every node.

    Ranks follow the node list, which Slurm's topology plugin sorts by switch.
    Neighbours in rank are thus neighbours in the network. ``--switches`` asks for as
    few leaf units as the nodes fill; a file of host names overrides the order.

    Args:
        brief: The plan. [-]
        program: Program that the nodes run. [-]

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
        cores=CORES * brief.gpus_per_node,
        **_time(brief),
    )
    return (LaunchFile(SCRIPT, text, executable=True),)


def _time(brief: Brief) -> dict[str, str]:
    """Time limit of the job: all steps at the slow end of the prediction, and start."""
    step = brief.estimate.step_time_s.high
    needed = START + brief.training_steps * step
    limit = min(-(-needed // MINUTES_10) * MINUTES_10, LONGEST)
    steps = f"{brief.training_steps:,} steps of up to {step:.3g} s take"
    whole = f"{steps} {needed / HOUR:,.1f} h, starting included"
    if needed > LONGEST:
        whole += ": several jobs of a week, each from the last one's CHECKPOINTS"
    return {"time": _clock(int(limit)), "why_time": f"{whole}."}


def _clock(seconds: int) -> str:
    """Days, hours, minutes and seconds as Slurm reads them. [text]."""
    days, rest = divmod(seconds, 24 * HOUR)
    return f"{days}-{rest // HOUR:02}:{rest % HOUR // 60:02}:{rest % 60:02}"


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
    """Command that submits the job.

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

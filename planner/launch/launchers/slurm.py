"""Slurm: one task per node, in the order of the network."""

from planner.launch.brief import Brief, LaunchFile, Program
from planner.launch.placement import Nodes
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

    A plan on several pools is a heterogeneous job: one component for each pool, in the
    order of ranks. Slurm numbers tasks, and counts its time limit, over all of them.

    Ranks follow the node list, which Slurm's topology plugin sorts by switch.
    Neighbours in rank are thus neighbours in the network. ``--switches`` asks for as
    few leaf units as the nodes fill; a file of host names overrides the order.
    """
    del program
    text = render(
        "job.sbatch.j2",
        job=brief.job,
        components=[_component(its) for its in brief.placement],
        layout=brief.layout,
        **_time(brief),
    )
    return (LaunchFile(SCRIPT, text, executable=True),)


def _component(its: Nodes) -> dict[str, object]:
    """One component of a job: the nodes of a pool."""
    tiers = its.cluster.spec.tiers
    return {
        **vars(its),
        "feature": its.slug,
        "units": leaf_units(its),
        "unit": tiers[0].name if tiers else "",
        "cores": CORES * its.gpus,
    }


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


def leaf_units(its: Nodes) -> int:
    """Fewest units of the innermost tier that hold nodes of one pool.

    Returns:
        Units; 0 where the cluster has no tier, or one unit holds one node. [1]
    """
    tiers = its.cluster.spec.tiers
    if not tiers or tiers[0].gpus <= its.gpus:
        return 0
    return -(-its.ranks // tiers[0].gpus)


def start(brief: Brief) -> str:
    """Command that submits the job."""
    del brief
    return f"sbatch {SCRIPT}"


SLURM = Launcher(
    name="slurm", title="Slurm", version="22.05 and later", write=write, start=start
)
"""Slurm batch scripts."""

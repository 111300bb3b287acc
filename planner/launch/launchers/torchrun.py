"""torchrun alone: launch.sh on every node, over ssh where there are several."""

from planner.launch.brief import BY_TORCHRUN, Brief, LaunchFile, Program
from planner.launch.target import Launcher
from planner.launch.text.nodes import NODES
from planner.launch.text.render import render

SCRIPT = "run.sh"


def write(brief: Brief, program: Program) -> tuple[LaunchFile, ...]:
    """Write a script that starts launch.sh on every host of a file."""
    del program
    if brief.nodes == 1:
        return ()
    text = render("run.sh.j2", nodes=brief.nodes, placed=bool(brief.layout.pools))
    return (LaunchFile(SCRIPT, text, executable=True),)


def start(brief: Brief) -> str:
    """Command that starts the run."""
    if brief.nodes == 1:
        return "./launch.sh"
    if brief.layout.pools:
        return f"./{SCRIPT} {NODES}    # with a host for each node"
    return f"./{SCRIPT} hosts.txt    # {brief.nodes} host names, one a line"


TORCHRUN = Launcher(
    name="torchrun",
    title="torchrun",
    version="torch 2.13",
    write=write,
    start=start,
    starter=BY_TORCHRUN,
)
"""PyTorch's own launcher."""

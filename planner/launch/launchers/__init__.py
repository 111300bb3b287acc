"""One file per launcher; a new launcher is registered in this tuple."""

from planner.launch.launchers.kubernetes import KUBERNETES
from planner.launch.launchers.slurm import SLURM
from planner.launch.launchers.torchrun import TORCHRUN
from planner.launch.target import Launcher

LAUNCHERS: tuple[Launcher, ...] = (SLURM, TORCHRUN, KUBERNETES)
"""Every launcher, in order of listing."""

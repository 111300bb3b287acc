"""Targets, which write and read launch files, and launchers of a cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.launch.brief import Brief, Gap, LaunchFile, Program, Reading, Starter

Files = Mapping[str, str]
"""Text by name of file. [text]"""


@dataclass(frozen=True)
class Target:
    """A framework that a plan can be written for.

    Attributes:
        name: Name on the command line. [text]
        title: Name in prose. [text]
        framework: Framework whose limits, recipe and profile price a plan. [text]
        version: Releases that the files are written for. [text]
        gaps: Features of a plan that the target cannot express. [-]
        write: Program of every rank, with the program's files. [-]
        reads: True where files look like the target's own. [-]
        read: Settings that the files give. [-]
        holds: Targets whose files may lie among the target's own. [text]
    """

    name: str
    title: str
    framework: str
    version: str
    gaps: Callable[[Brief], tuple[Gap, ...]]
    write: Callable[[Brief], Program]
    reads: Callable[[Files], bool]
    read: Callable[[Files], Reading]
    holds: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Launcher:
    """Launcher, which starts a program on the nodes of a cluster.

    Attributes:
        name: Name on the command line. [text]
        title: Name in prose. [text]
        version: Releases that the files are written for. [text]
        write: Files of the launcher, beside the program's files. [-]
        start: Command that a user types in the folder. [text]
        starter: Starter of a node's ranks, where the program allows it; None keeps
            the program's starter. [text]
    """

    name: str
    title: str
    version: str
    write: Callable[[Brief, Program], tuple[LaunchFile, ...]]
    start: Callable[[Brief], str]
    starter: Starter | None = None

"""A target: who writes launch files for a plan, and who reads them back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.launch.brief import Brief, Gap, LaunchFile, Program, Reading, Starter

Files = Mapping[str, str]
"""Text by name of file. [text]"""


@dataclass(frozen=True)
class Target:
    """A framework that a plan can be written for.

    Attributes:
        name: On the command line. [text]
        title: In prose. [text]
        framework: The room whose limits, recipe and profile price it. [text]
        version: Releases that the files are written for. [text]
        gaps: What of a plan it cannot express; empty where it can all of it. [-]
        write: The program of every rank, with its files. [-]
        reads: Whether these files look like its own. [-]
        read: What they say. [-]
        holds: Targets whose files may lie among its own. [text]
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
    """What starts a program on the nodes of a cluster.

    Attributes:
        name: On the command line. [text]
        title: In prose. [text]
        version: Releases that the files are written for. [text]
        write: Its files beside the program's. [-]
        start: The command that a user types in the folder. [text]
        starter: What starts the ranks of a node where the program allows it; None
            leaves the program's own. [text]
    """

    name: str
    title: str
    version: str
    write: Callable[[Brief, Program], tuple[LaunchFile, ...]]
    start: Callable[[Brief], str]
    starter: Starter | None = None

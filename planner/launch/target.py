"""Targets, which write and read launch files, and launchers of a cluster."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from planner.launch.brief import Brief, Gap, LaunchFile, Program, Reading, Starter
from planner.specs.frameworks.lacks import Writer

CODE = "planner.launch.targets"
"""Package of the folders of targets, each by the target's name. [text]"""
POOLS = "layout.pools"
"""Field of the pools that host the stages of a plan. [text]"""
Files = Mapping[str, str]
"""Text by name of file. [text]"""


@dataclass(frozen=True)
class Target:
    """A program that a plan can be written for; code is imported at first use.

    The folder of a target in ``targets`` has ``writer.py`` (write) and ``reader.py``
    (reads, read).

    Attributes:
        framework: Framework whose limits, recipe and profile price a plan. [text]
        writer: The target in the framework's room. [-]
    """

    framework: str
    writer: Writer

    @property
    def name(self) -> str:
        """Name on the command line. [text]."""
        return self.writer.target

    @property
    def title(self) -> str:
        """Name in prose. [text]."""
        return self.writer.title

    @property
    def version(self) -> str:
        """Releases that the files are written for. [text]."""
        return self.writer.version

    @property
    def holds(self) -> frozenset[str]:
        """Targets whose files may lie among the target's own. [text]."""
        return self.writer.holds

    def gaps(self, brief: Brief) -> tuple[Gap, ...]:
        """Features of a plan that the target cannot express. [-]."""
        code = import_module(f"{CODE}.gaps")
        gaps: tuple[Gap, ...] = code.gaps(brief, self.framework, self.writer)
        return (*gaps, *_pool_gaps(brief))

    def write(self, brief: Brief) -> Program:
        """Program of every rank, with the program's files. [-]."""
        program: Program = self._code("writer").write(brief)
        return program

    def reads(self, files: Files) -> bool:
        """Tell if files look like the target's own. [-]."""
        return self._reader(files) is not None

    def read(self, files: Files) -> Reading:
        """Settings that the files give. [-]."""
        reader = self._reader(files) or self._code("reader")
        reading: Reading = reader.read(files)
        return reading

    def _reader(self, files: Files) -> ModuleType | None:
        """Reader of files of the target, or of its kin; None for other files."""
        kin = (import_module(f"{CODE}.{name}.reader") for name in self.writer.kin)
        readers = (*kin, self._code("reader"))
        return next((each for each in readers if each.reads(files)), None)

    def _code(self, module: str) -> ModuleType:
        folder = self.name.replace("-", "_")
        return import_module(f"{CODE}.{folder}.{module}")


def _pool_gaps(brief: Brief) -> Iterator[Gap]:
    """Pools on which no launcher can place the ranks."""
    names = ", ".join(pool.pool for pool in brief.layout.pools)
    if names and sum(its.ranks for its in brief.placement) != brief.layout.gpus:
        yield Gap("whole nodes of each pool alone", POOLS, names, "")


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
            the program's starter. [-]
    """

    name: str
    title: str
    version: str
    write: Callable[[Brief, Program], tuple[LaunchFile, ...]]
    start: Callable[[Brief], str]
    starter: Starter | None = None

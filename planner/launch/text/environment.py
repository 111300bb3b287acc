"""Variables that every launch script sets, by fabric and GPU, read from data."""

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.catalog import Cluster
from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.brief import Brief, Program, Variable

FILE = Path(__file__).with_name("environment.yaml")


class When(BaseModel):
    """Conditions that must all hold for a variable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fabric: str | None = None
    nodes: int = Field(default=1, ge=1)
    """Fewest nodes. [1]"""
    vendor: Literal["nvidia", "amd", "intel"] | None = None


class Known(BaseModel):
    """A variable with a reason and a source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    value: str
    why: str
    source: str
    when: When = When()

    def applies(self, cluster: Cluster, nodes: int) -> bool:
        """Tell if a run on these nodes needs the variable.

        Returns:
            True where every condition holds.
        """
        vendor = self.when.vendor in (None, cluster.gpu.vendor)
        fabric = self.when.fabric in (None, cluster.nic.fabric)
        return vendor and fabric and nodes >= self.when.nodes


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    variables: tuple[Known, ...]


@cache
def known_variables() -> tuple[Known, ...]:
    """Read all variables of the file, in the file's order."""
    return _File.model_validate(parse_yaml(FILE.read_text())).variables


def environment(brief: Brief, program: Program) -> tuple[Variable, ...]:
    """Variables that a launch script sets: the program's first, then the cluster's."""
    its = [
        Variable(known.name, known.value, known.why)
        for known in known_variables()
        if any(known.applies(each.cluster, brief.nodes) for each in brief.placement)
    ]
    by_name = {v.name: v for v in (*reversed(its), *reversed(program.environment))}
    order = dict.fromkeys(v.name for v in (*program.environment, *its))
    return tuple(by_name[name] for name in order)

"""Reads the named software stacks of a framework's room."""

from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from pydantic import BaseModel, ConfigDict, Field

from planner.errors import BadInputError, did_you_mean
from planner.hardware.reading.yaml_text import parse_yaml
from planner.specs.frameworks.framework import Framework, RecipeOverrides
from planner.specs.frameworks.limits import Limits
from planner.specs.frameworks.profile import Profile
from planner.specs.frameworks.sourced import Sourced
from planner.specs.frameworks.switches import Needs
from planner.specs.layouts.context import CpFamily
from planner.specs.layouts.formats import Formats
from planner.specs.layouts.layout import Schedule

_ENDING = ".yaml"


class StackLimits(BaseModel):
    """Limits that a stack has in place of the limits of its room."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    precisions: tuple[str, ...] | None = None
    """Compute formats that a search may choose from. [text]"""
    schedules: tuple[Schedule, ...] | None = None
    """Pipeline schedules. [text]"""
    recomputes_split: bool | None = None
    """True where a schedule that splits the backward may recompute activations."""
    zero_stages: tuple[int, ...] | None = None
    """ZeRO stages. [1]"""
    sequence_parallel: tuple[bool, ...] | None = None
    """Legal values of ``sp`` where tp > 1."""
    orders: tuple[str, ...] | None = None
    """Rank orders. [text]"""
    recompute: tuple[str, ...] | None = None
    """Kinds of recompute. [text]"""
    pipeline: bool | None = None
    """True where pp may differ from 1."""
    expert_parallel: bool | None = None
    """True where ep may differ from 1."""
    expert_tensor: bool | None = None
    """True where etp may differ from 1."""
    context_parallel: bool | None = None
    """True where cp may differ from 1."""
    cp_kinds: tuple[CpFamily, ...] | None = None
    """Kinds of context parallelism. [text]"""
    ulysses_copies_keys: bool | None = None
    """True where Ulysses may use more ranks than there are key heads."""
    hybrid_sharding: bool | None = None
    """True where shard groups may be smaller than the data ranks."""
    hpz: bool | None = None
    """True where the weights may have a second copy in groups of ranks at ZeRO 3."""
    shards_need_ranks: bool | None = None
    """True where ZeRO 2 and 3 need more than one rank that shares the states."""
    split_replicas_need_shards: bool | None = None
    """True where replicas of a model that tp or cp splits must share states."""
    recompute_modules: tuple[str, ...] | None = None
    """Combinations of modules that may be recomputed. [text]"""
    recompute_blocks: bool | None = None
    """True where the first layers of every virtual stage alone may be recomputed."""
    offload: frozenset[str] | None = None
    """Categories that may lie in host memory; + joins those that move together."""
    offload_in_parts: dict[str, int] | None = None
    """Categories of which any share can be offloaded, by the ZeRO stage needed. [1]"""
    offload_least_zero: dict[str, int] | None = None
    """ZeRO stage that a category needs beyond being sharded, to be offloaded. [1]"""

    def on(self, limits: Limits) -> Limits:
        """Replace a room's limits by the limits that the stack gives."""
        return replace(limits, **self.model_dump(exclude_none=True))


class Stack(Sourced):
    """A software stack, by differences from the default stack of its room.

    Attributes:
        name: Name of the stack's file. [-]
        title: Title of the stack. [text]
        era: Versions and years that the stack stands for. [text]
        source: Facts on the stack's kernels, with their sources. [text]
        profile: Fields of the profile that differ. [-]
        recipe: Memory habits that differ. [-]
        limits: Fields of the room's limits that differ. [-]
        formats: Formats that can be sent; None keeps the room's formats. [-]
        nearest_target: Target nearest to a stack without launch files; empty where the
            room's targets write the stack's files. [text]
        switches: Needs of switches that differ from the room's. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    era: str
    source: str
    profile: dict[str, object] = Field(default_factory=dict)
    recipe: RecipeOverrides = RecipeOverrides()
    limits: StackLimits = StackLimits()
    formats: Formats | None = None
    nearest_target: str = ""
    switches: dict[str, Needs] = Field(default_factory=dict)

    @property
    def values(self) -> dict[str, object]:
        """Values that the stack gives, each of which needs a source: by name. [-]."""
        blocks = (self.recipe, self.limits)
        given = (block.model_dump(exclude_none=True) for block in blocks)
        return self.profile | {name: v for block in given for name, v in block.items()}


def _folder(room: str) -> Traversable:
    return files("planner.frameworks") / room / "stacks"


@lru_cache
def stack_names(room: str) -> tuple[str, ...]:
    """Stacks of a room: one file each in ``planner/frameworks/<room>/stacks``."""
    there = (path.name for path in _folder(room).iterdir())
    return tuple(
        sorted(name.removesuffix(_ENDING) for name in there if name.endswith(_ENDING))
    )


@lru_cache
def read_stack(room: str, name: str) -> Stack:
    """Read a stack of a room.

    Raises:
        BadInputError: No such stack in that room; names the nearest.
    """
    known = stack_names(room)
    if name not in known:
        raise BadInputError(
            f"{room} has no such stack; {did_you_mean(name, known)}",
            field="stack.name",
            value=name,
            allowed=", ".join(known),
        )
    text = (_folder(room) / f"{name}.yaml").read_text()
    return Stack.model_validate(parse_yaml(text))


def with_stack(framework: Framework, name: str) -> Framework:
    """Put a framework on a named stack in place of the default stack.

    Raises:
        BadInputError: No such stack in that framework; names the nearest.
    """
    stack = read_stack(framework.name, name)
    own = {"name": stack.name, "version": stack.era, "source": stack.source}
    fields = framework.profile.model_dump() | own | stack.profile
    return replace(
        framework,
        stack=stack.name,
        profile=Profile.model_validate(fields),
        recipe=stack.recipe.on(framework.recipe),
        limits=stack.limits.on(framework.limits),
        formats=framework.formats if stack.formats is None else stack.formats,
        writers=() if stack.nearest_target else framework.writers,
        nearest_target=stack.nearest_target,
        switches=framework.switches | stack.switches,
    )

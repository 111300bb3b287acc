"""Reads the named software stacks of a framework's room."""

from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from pydantic import BaseModel, ConfigDict

from hardware.yaml_text import parse_yaml
from planner.errors import BadInputError, did_you_mean
from planner.specs.context import CpFamily
from planner.specs.formats import Formats
from planner.specs.framework import Framework, RecipeOverrides
from planner.specs.layout import Schedule
from planner.specs.limits import Limits
from planner.specs.profile import Profile
from planner.specs.switches import Needs

_ENDING = ".yaml"


class StackLimits(BaseModel):
    """What a stack can express in place of its room's limits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    precisions: tuple[str, ...] | None = None
    """Compute formats that a search may choose from. [text]"""
    schedules: tuple[Schedule, ...] | None = None
    """Pipeline schedules. [text]"""
    recomputes_split: bool | None = None
    """Whether a schedule that splits the backward may recompute activations."""
    zero_stages: tuple[int, ...] | None = None
    """ZeRO stages. [1]"""
    sequence_parallel: tuple[bool, ...] | None = None
    """Legal values of ``sp`` where tp > 1."""
    orders: tuple[str, ...] | None = None
    """Rank orders. [text]"""
    recompute: tuple[str, ...] | None = None
    """Kinds of recompute. [text]"""
    expert_parallel: bool | None = None
    """Whether ep may differ from 1."""
    expert_tensor: bool | None = None
    """Whether etp may differ from 1."""
    context_parallel: bool | None = None
    """Whether cp may differ from 1."""
    cp_kinds: tuple[CpFamily, ...] | None = None
    """Kinds of context parallelism. [text]"""
    ulysses_copies_keys: bool | None = None
    """Ulysses may deal to more ranks than there are heads of keys."""
    hybrid_sharding: bool | None = None
    """Whether shard groups may be smaller than the data ranks."""
    shards_need_ranks: bool | None = None
    """ZeRO 2 and 3 exist only where more than one rank shares the states."""
    split_replicas_need_shards: bool | None = None
    """Replicas of a model that tp or cp splits must share states."""
    recompute_modules: tuple[str, ...] | None = None
    """Combinations of modules that may be recomputed. [text]"""
    recompute_blocks: bool | None = None
    """Whether the first layers of every virtual stage alone may be recomputed."""
    offload: frozenset[str] | None = None
    """What may lie in host memory, with + between what only moves together."""
    offload_in_parts: dict[str, int] | None = None
    """Categories of which any share can be offloaded, by the ZeRO stage needed. [1]"""
    offload_least_zero: dict[str, int] | None = None
    """ZeRO stage that a category needs beyond being sharded, to be offloaded. [1]"""

    def on(self, limits: Limits) -> Limits:
        """A room's limits with these in place of its own.

        Args:
            limits: The room's. [-]

        Returns:
            The same where nothing is given here. [-]
        """
        return replace(limits, **self.model_dump(exclude_none=True))


class Stack(BaseModel):
    """One software stack: how it differs from the default of its room.

    Attributes:
        name: Name of its file. [-]
        title: What it is. [text]
        era: Versions and years that it stands for. [text]
        source: What is known of its kernels, and from where. [text]
        profile: Fields of the profile that differ. [-]
        recipe: Memory habits that differ. [-]
        limits: Fields of the room's limits that differ. [-]
        formats: What can be sent in place of the room's formats, where it differs. [-]
        nearest_target: Target nearest to a stack that no files are written for; none
            where those of the room are its own. [text]
        switches: What it asks before it takes a switch, where it differs. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    era: str
    source: str
    profile: dict[str, object] = {}
    recipe: RecipeOverrides = RecipeOverrides()
    limits: StackLimits = StackLimits()
    formats: Formats | None = None
    nearest_target: str = ""
    switches: dict[str, Needs] = {}


def _folder(room: str) -> Traversable:
    return files("planner.frameworks") / room / "stacks"


@lru_cache
def stack_names(room: str) -> tuple[str, ...]:
    """Stacks of a room: one file each in ``planner/frameworks/<room>/stacks``.

    Args:
        room: Name of the framework. [text]

    Returns:
        Names, sorted. [text]
    """
    there = (path.name for path in _folder(room).iterdir())
    return tuple(
        sorted(name.removesuffix(_ENDING) for name in there if name.endswith(_ENDING))
    )


@lru_cache
def read_stack(room: str, name: str) -> Stack:
    """One stack of a room.

    Args:
        room: Name of the framework. [text]
        name: Name of the stack. [text]

    Returns:
        Its title, era, source and what it changes. [-]

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
    return Stack.model_validate(
        parse_yaml((_folder(room) / f"{name}.yaml").read_text())
    )


def with_stack(framework: Framework, name: str) -> Framework:
    """A framework on one of its stacks, in place of its default.

    Args:
        framework: Any framework. [-]
        name: Name of the stack. [text]

    Returns:
        The framework with that profile, recipe and limits. [-]

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

"""Bytes that FSDP2's groups of weights add on one rank, read off a model's groups.

A cost table adds these bytes to the memory of blocks and ends alone
(``block_memory``, ``ends_memory``). While a block's backward runs, its weights are
whole. The group before is gathered ahead of time, and the group after is being reduced.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from planner.eager.case import EagerCase, Unsupported
from planner.eager.engine.storage import SIZE
from planner.eager.sharding.fsdp import Group
from planner.eager.sharding.parallel import ParallelIteration


class GroupMemory(BaseModel):
    """One group of weights that FSDP2 gathers and reduces together."""

    model_config = ConfigDict(frozen=True)

    shard: int = Field(description="weights on this rank, as stored [B]")
    whole: int = Field(description="weights gathered, in the type of compute [B]")
    copy_in: int = Field(description="shards cast to the type of compute [B]")
    gathered: int = Field(description="buffer of the all-gather [B]")
    reduce: int = Field(description="buffer of the reduce-scatter, all ranks' [B]")
    reduced: int = Field(description="gradients on this rank, once reduced [B]")


class GroupsMemory(BaseModel):
    """The groups of a model: each block, and the ends."""

    model_config = ConfigDict(frozen=True)

    blocks: tuple[GroupMemory, ...]
    ends: GroupMemory


def groups_memory(case: EagerCase) -> GroupsMemory:
    """Bytes that the groups of a case gather and reduce on one rank.

    Shards are whole rows, ceil(rows / ranks) of them, so gathered weights are
    padded. Rounding to the allocator's blocks of 512 bytes is left out.

    Args:
        case: A case with ``zero`` 2 or 3. [case]

    Returns:
        Bytes of each block's group and of the ends' group. [B]

    Raises:
        Unsupported: When the case does not shard, or cannot.
    """
    sharded = ParallelIteration(case).sharded
    if sharded is None:
        raise Unsupported("zero 0 shards nothing")
    return GroupsMemory(
        blocks=tuple(_memory(group) for group in sharded.blocks),
        ends=_memory(sharded.root),
    )


def _memory(group: Group) -> GroupMemory:
    policy, stored = group.policy, group.weights[0].shard.dtype
    mine = sum(weight.shard.numel for weight in group.weights)
    trained = [w.shard.numel for w in group.weights if w.shard.requires_grad]
    compute, reduce = SIZE[policy.compute], SIZE[policy.reduce]
    casts = policy.world > 1 and stored != policy.compute
    several = policy.world > 1
    return GroupMemory(
        shard=mine * SIZE[stored],
        whole=mine * policy.world * compute,
        copy_in=mine * compute if casts else 0,
        gathered=mine * policy.world * compute if several else 0,
        reduce=sum(trained) * policy.world * reduce,
        reduced=sum(trained) * SIZE[stored],
    )

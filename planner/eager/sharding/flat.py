"""FSDP1: flat parameters, wrapped one by one, gathered and reduced on own streams.

Each trained weight of a block and the rest of it are units; the weights outside the
blocks are the last one. Wrapping a unit takes, on the GPU (torch/distributed/fsdp of
PyTorch 2.2):

- each weight, as it comes from the CPU (_init_utils.py, ``_move_states_to_device``);
- buckets that are broadcast from the first rank (``_sync_module_params_and_buffers``;
  ``broadcast_coalesced``, torch/csrc/distributed/c10d/comm.cpp);
- the flat parameter (_flat_param.py, ``flatten_tensors``), then a copy of the rank's
  part (``_get_shard``), which alone stays.

What is freed stays in the cache of the stream that computes. Gathered units, copies of
offloaded shards and reduced gradients come from streams of their own, whose caches are
apart (_runtime_utils.py, ``_init_streams``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.eager.engine.storage import COPIED, GATHERS, REDUCED, SIZE, Tensor
from planner.eager.modules import Module
from planner.eager.sharding.fsdp import (
    IDLE,
    POST_BACKWARD,
    PRE_BACKWARD,
    Group,
    Place,
    Policy,
    ShardedBlock,
    Traffic,
    places_of,
    watched,
)

BUCKET = 250 * 2**20
"""Bytes that close a bucket (``PARAM_BROADCAST_BUCKET_SIZE``). [B]"""


class Unit:
    """Weights that share a flat parameter: the rank's part, and all while gathered."""

    def __init__(self, places: list[list[Place]], policy: Policy) -> None:
        self.places, self.policy = places, policy
        wholes: list[Tensor] = [getattr(*where[0]) for where in places]
        self.shapes = [whole.shape for whole in wholes]
        self.counts = [whole.numel for whole in wholes]
        self.tape, self.dtype = wholes[0].tape, wholes[0].dtype
        self.trained = wholes[0].requires_grad
        self.part = -(-sum(self.counts) // policy.world)
        self.views: list[Tensor] = []
        self.shard = wholes[0]

    def wrap(self, sent: list[Tensor], *, offload: bool) -> list[Tensor]:
        """Move, broadcast, flatten and cut.

        Args:
            sent: Buckets of the unit before, lent again once a weight has been moved:
                that copy waits for the broadcast. [tensors]
            offload: True if the rank's part goes back to the CPU. [flag]

        Returns:
            Buckets of this unit. [tensors]
        """
        moved = []
        for count in self.counts:
            moved.append(self._room(count))
            sent.clear()
        least = BUCKET // SIZE[self.dtype]
        sent = [self._room(held) for held in buckets(self.counts, least)]
        flat = self._room(sum(self.counts))
        self.shard = self._room(self.part)
        self.shard.requires_grad = self.trained
        del flat, moved
        if offload:
            self.shard.storage.resize(0)
        self._show([self.shard] * len(self.places))
        return sent

    def _room(self, count: int, category: str = "params") -> Tensor:
        return self.tape.new((count,), self.dtype, category=category)

    def fill(self, stream: str, *, offload: bool) -> None:
        """Gather the flat parameter and let the modules see its weights.

        Args:
            stream: Category of the bytes. [name]
            offload: True if the rank's part comes from the CPU. [flag]
        """
        count = self.part * self.policy.world
        copy = self._room(self.part, COPIED) if offload else None
        if self.views:
            storage = self.views[0].storage
            storage.relabel(stream)
            storage.resize(count * SIZE[self.dtype])
        else:
            self.views = self._views(self._room(count, stream))
        del copy
        self._show(self.views)

    def _views(self, whole: Tensor) -> list[Tensor]:
        views = [whole.alias(shape) for shape in self.shapes]
        for view in views:
            view.requires_grad = self.trained
        return views

    def drop(self) -> None:
        """Free the gathered bytes, whatever still refers to them."""
        self.views[0].storage.resize(0)
        self._show([self.shard] * len(self.places))

    def reduce(self, *, offload: bool) -> None:
        """Scatter the sum of all ranks' gradients into the rank's part.

        Args:
            offload: True if the result goes to the CPU. [flag]
        """
        given = [view for view in self.views if view.grad is not None]
        if given:
            mine = self._room(self.part, REDUCED)
            if self.shard.grad is None and not offload:
                self.shard.grad = mine
        for view in given:
            view.grad = None

    def _show(self, weights: Sequence[Tensor]) -> None:
        for where, weight in zip(self.places, weights, strict=True):
            for module, name in where:
                setattr(module, name, weight)


@dataclass
class FlatTraffic(Traffic):
    """Number of gathers, and the group used last, of all groups of a model."""

    gathers: int = 0
    last: FlatGroup | None = None


class FlatGroup(Group):
    """A block's units, or the last one, gathered and reduced together."""

    def __init__(
        self, units: list[Unit], policy: Policy, traffic: FlatTraffic, *, offload: bool
    ) -> None:
        super().__init__(units[0].tape, [], policy, traffic)
        self.units, self.offload, self.flat = units, offload, traffic
        self.before: FlatGroup | None = None

    def gather(self) -> None:
        """Gather every unit, unless that was done."""
        if not self.open:
            self.flat.gathers += 1
            stream = GATHERS[self.flat.gathers % len(GATHERS)]
            for unit in self.units:
                unit.fill(stream, offload=self.offload)
            self.open = True

    def copy_out(self) -> None:
        """Nothing: weights are views of what was gathered."""

    def close(self) -> None:
        """Keep the rank's parts alone."""
        if self.open:
            for unit in self.units:
                unit.drop()
            self.open = False

    def after_forward(self) -> None:
        """Free the gathered units where asked."""
        if self.policy.reshard:
            self.close()
        self.state = IDLE
        self.before, self.flat.last = self.flat.last, self

    def before_backward(self) -> None:
        """Gather for the backward pass, none ahead of time.

        The unit that was used before a block is an adapter of its own, which the
        forward without gradients has not marked for its backward.
        """
        if self.state != PRE_BACKWARD:
            self.state = PRE_BACKWARD
            self.gather()

    def after_backward(self) -> None:
        """Reduce the gradients; gather the group before, then free this one.

        Both wait for the gradient of one tensor, and the hook of the group before was
        set first.
        """
        self.state = POST_BACKWARD
        for unit in self.units:
            unit.reduce(offload=self.offload)
        if self.before is not None:
            self.before.before_backward()
        self.close()


class FlatModel:
    """All units of a model, wrapped; the last one is whole until the backward ends."""

    def __init__(
        self, model: Module, layers: list[Module], policy: Policy, *, offload: bool
    ) -> None:
        self.policy, self.offload, self.sent = policy, offload, list[Tensor]()
        self.traffic = FlatTraffic()
        self.blocks = []
        for i, block in enumerate(layers):
            group = self._wrapped(block)
            layers[i] = ShardedBlock(block, group)
            self.blocks.append(group)
        self.root = self._wrapped(model)
        self.sent.clear()

    def _wrapped(self, module: Module) -> FlatGroup:
        """Wrap the weights below a module that are in no unit yet."""
        inside = {id(unit.shard) for group in self.blocks for unit in group.units}
        units = [Unit(each, self.policy) for each in units_of(module, inside)]
        for unit in units:
            self.sent = unit.wrap(self.sent, offload=self.offload)
        return FlatGroup(units, self.policy, self.traffic, offload=self.offload)

    def before_forward(self) -> None:
        """Gather the ends."""
        self.root.gather()

    def after_forward(self, loss: Tensor) -> Tensor:
        """Let the backward begin with the gather of the last block, ahead of time.

        Args:
            loss: Output of the model. [tensor]

        Returns:
            The output, watched. [tensor]
        """
        return watched(loss, "gather", self.blocks[-1].gather)

    def finish(self) -> None:
        """End a backward pass: free what no gradient has set off."""
        self.traffic.last, self.traffic.gathers = None, 0
        for group in (self.root, *self.blocks):
            if group.state != POST_BACKWARD:
                group.after_backward()
            group.state = IDLE


def units_of(module: Module, inside: set[int]) -> list[list[list[Place]]]:
    """Weights below a module by unit, in the order of wrapping.

    Where some are frozen, each trained one is a unit of its own and comes first, as all
    weights of a flat parameter are trained or none is.

    Args:
        module: A block, or the model whose blocks are wrapped. [module]
        inside: Identities of tensors that other units have. [identities]

    Returns:
        Places of each weight of each unit. [places]

    References:
        peft utils/other.py, fsdp_auto_wrap_policy, and get_wrapping_policy of
        Answer.AI's fsdp_qlora: modules without children whose weight is trained, and
        the model's layers; torch/distributed/fsdp/wrap.py wraps children first.
    """
    places = places_of(module, inside)
    frozen = [each for each in places if not getattr(*each[0]).requires_grad]
    if not frozen:
        return [places]
    trained = [each for each in places if getattr(*each[0]).requires_grad]
    return [*([each] for each in trained), frozen]


def buckets(counts: Sequence[int], least: int) -> Iterator[int]:
    """Elements of the buckets that are broadcast, each closed once it has enough.

    References:
        torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size.
    """
    held = 0
    for count in counts:
        held += count
        if held >= least:
            yield held
            held = 0
    if held:
        yield held

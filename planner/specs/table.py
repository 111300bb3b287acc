"""The one table between cost, search, simulator and brute force.

Integers only: time in ns, memory in blocks of 512 B, rounded once. Nothing
downstream rounds again, so that a bound stays a bound.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property

BLOCK = 512
"""Bytes in one block of the caching allocator. [B]"""


@dataclass(frozen=True)
class EndCosts:
    """The embedding before the first layer, or the head after the last.

    Times in ns, memory in blocks. ``saved`` is held per micro-batch in flight,
    ``transient`` only while the end's own backward runs. ``weight`` is the part of
    ``backward`` that makes weight gradients, an operation of its own in schedules
    that split the backward. ``pending`` is held per micro-batch that waits for it.
    """

    forward: int = 0
    backward: int = 0
    saved: int = 0
    transient: int = 0
    static: int = 0
    accumulated: int = 0
    gather: int = 0
    scatter: int = 0
    optimizer: int = 0
    weight: int = 0
    pending: int = 0
    spared: int = 0
    """Counted states that the limit on the risk leaves out, so that ``static`` is
    without them. [block]"""

    @cached_property
    def timeless(self) -> "EndCosts":
        """The memory of the end, without times."""
        return EndCosts(
            saved=self.saved,
            transient=self.transient,
            static=self.static,
            accumulated=self.accumulated,
            pending=self.pending,
        )


@dataclass(frozen=True)
class LayerCosts:
    """One layer kind under every recompute kind of the menu.

    Times in ns, memory in blocks; tuples have one entry per kind of the menu. For
    ``weight`` and ``pending`` see :class:`EndCosts`; recompute touches neither.
    """

    forward: tuple[int, ...]
    backward: tuple[int, ...]
    saved: tuple[int, ...]
    transient: tuple[int, ...]
    static: int
    accumulated: int
    gather: int
    scatter: int
    optimizer: int
    weight: int = 0
    pending: int = 0
    spared: int = 0
    """Counted states that the limit on the risk leaves out. [block]"""

    @cached_property
    def timeless(self) -> "LayerCosts":
        """The memory of the layers that the limit counts, without times."""
        return replace(
            self,
            forward=(),
            backward=(),
            gather=0,
            scatter=0,
            optimizer=0,
            weight=0,
            spared=0,
        )


@dataclass(frozen=True)
class IdleMoment:
    """A moment of every rank outside its schedule's backwards. [block].

    ``sum over units of (static + held) + largest beside``. A unit's ``held`` is the
    memory above its states, or below them where negative. ``beside`` is of the one
    unit that is worked on. Layer tuples are by layer kind, then by entry of the menu.
    """

    name: str
    layers: tuple[tuple[int, ...], ...]
    beside: tuple[tuple[int, ...], ...]
    embedding: int = 0
    embedding_beside: int = 0
    head: int = 0
    head_beside: int = 0

    @cached_property
    def on_layers(self) -> bool:
        """True where layers alone may make this the fullest moment of a rank."""
        cells = (*self.layers, *self.beside)
        return any(cell > 0 for row in cells for cell in row)

    @cached_property
    def on_embedding(self) -> bool:
        """True where the embedding may make this the fullest moment of a rank."""
        return self.embedding > 0 or self.embedding_beside > 0

    @cached_property
    def on_head(self) -> bool:
        """True where the head may make this the fullest moment of a rank."""
        return self.head > 0 or self.head_beside > 0


@dataclass(frozen=True)
class StageCosts:
    """Everything that the choice of stages needs for one mesh: the inner problem.

    Solver, brute force and simulator all judge a stage split by these numbers. They
    also judge the recompute kind of every layer, where the menu has more than one.
    """

    schedule: str
    pp: int
    vpp: int
    micro_batches: int
    runs: tuple[tuple[int, int], ...]
    """(layer kind, count) in model order."""
    menu: tuple[str, ...]
    layers: tuple[LayerCosts, ...]
    """Costs by layer kind."""
    embedding: EndCosts
    head: EndCosts
    first_gather: int
    """Gather of the first layer, before which no forward starts. [ns]"""
    last_scatter: int
    """Reduce-scatter of the last layer, after the backward is over. [ns]"""
    p2p: int
    """Transfer of an activation from one stage to the next. [ns]"""
    scatter_every: int
    """Micro-batches per gradient reduce-scatter. [1]"""
    overlap_gather: bool
    overlap_scatter: bool
    budget: int
    """Memory left for states and activations on every rank. [block]"""
    slowdown: float
    """Straggler factor on the simulated step. [1]"""
    overhead: int = 0
    """Host work of a step, after the optimizer of every rank. [ns]"""
    extra_layers: int = 0
    """Layers that a virtual stage may hold above the balanced count. [1]"""
    idle: tuple[IdleMoment, ...] = ()
    """Moments beside the backwards, in the order of a run."""
    copies: int = 1
    """Copies of the model on the ranks, each with its part of the batch. [1]"""
    block: int = 0
    """First layers of every virtual stage under the first kind of the menu, all others
    under the second, on the even split alone; 0: split and kinds are free. [1]"""
    hosts: tuple["StageCosts", ...] = ()
    """The inner problem on each pool alone, where several pools host stages. Layers
    then have the least costs of the pools, and ranks the largest budget. An end has
    the costs of the pool that it lies in."""
    pool_of_rank: tuple[int, ...] = ()
    """Entry of ``hosts`` that every pipeline rank lies in. [1]"""

    def __hash__(self) -> int:
        """Hash of all fields, worked out once: problems are keys of many caches."""
        return self._hash

    def __getstate__(self) -> dict[str, object]:
        """Fields alone: another process has hashes of its own."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in fields(self)))

    @cached_property
    def timeless(self) -> "StageCosts":
        """The problem without times: the key of everything that memory decides.

        Rank orders and switches that change times alone share it.
        """
        return replace(
            self,
            layers=tuple(layer.timeless for layer in self.layers),
            embedding=self.embedding.timeless,
            head=self.head.timeless,
            first_gather=0,
            last_scatter=0,
            p2p=0,
            scatter_every=0,
            overlap_gather=False,
            overlap_scatter=False,
            slowdown=1.0,
            overhead=0,
            hosts=tuple(host.timeless for host in self.hosts),
        )

    def pool(self, rank: int) -> int:
        """Index of the hosting pool that a pipeline rank lies in.

        Returns:
            Entry of ``hosts``; 0 where one pool hosts all. [1]
        """
        return self.pool_of_rank[rank] if self.hosts else 0

    def on_rank(self, rank: int) -> "StageCosts":
        """The problem with the costs that hold on one pipeline rank."""
        return self.hosts[self.pool(rank)] if self.hosts else self

    @cached_property
    def budgets(self) -> tuple[int, ...]:
        """Budget of every pipeline rank. [block], shape (pp,)."""
        return tuple(self.on_rank(rank).budget for rank in range(self.pp))

    @cached_property
    def stages(self) -> int:
        """Virtual stages of the model, its copies not counted. [1]."""
        return self.pp * self.vpp // self.copies

    @cached_property
    def layer_count(self) -> int:
        """Layers of the model. [1]."""
        return sum(count for _, count in self.runs)

    @cached_property
    def passes(self) -> int:
        """Micro-batches of a step that pass one virtual stage. [1]."""
        return self.micro_batches // self.copies

    @cached_property
    def held_layers(self) -> int:
        """Layers on all ranks together, with every copy of the model. [1]."""
        return self.copies * self.layer_count

    @cached_property
    def most_layers(self) -> int:
        """Most layers of one virtual stage in the declared class. [1]."""
        return -(-self.layer_count // self.stages) + self.extra_layers

    @cached_property
    def fewest(self) -> tuple[int, ...]:
        """Fewest layers of every virtual stage. [1], shape (stages,)."""
        return tuple(self.fewest_layers(stage) for stage in range(self.stages))

    def fewest_layers(self, stage: int) -> int:
        """Fewest layers of a virtual stage: 0 only where an end lives."""
        return 0 if self.stages > 1 and stage in (0, self.stages - 1) else 1

"""Memory at the moments beside a schedule's backwards: what each has, unit by unit.

Peak memory is a maximum over moments. Those of the passes are read from the
schedule (``planner.schedules.inflight``). All others hold the rank's states, more or
less of each unit, and one unit that is worked on; they are filled here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, reduce

import numpy as np

from planner.cost.memory.buffers import root_bytes
from planner.cost.memory.optimizer_step_bytes import (
    embedding_temporaries,
    load_copies,
    quantising_bytes,
    save_staging,
    step_copies,
    step_working,
    tied_gradient,
    unit_bytes,
)
from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.parameters.rank_parameters import Owned
from planner.cost.parameters.states import States, late_gradients, state_bytes
from planner.cost.pricing import Pricing
from planner.specs.answer.estimate import RESUME, STEP
from planner.specs.table import BLOCK, IdleMoment

START = "start-up"
STEADY = "steady"
LOSS = "loss backward"
BACKWARD = "backward"
BACKWARD_END = "end of backward"
GATHER = "parameter gather"
SAVE = "checkpoint save"
STEP_MOMENTS = (STEADY, LOSS, BACKWARD, BACKWARD_END, STEP, GATHER)
"""Moments of every training step."""
ORDER = (START, *STEP_MOMENTS, SAVE, RESUME)
"""All moments: a run starts, steps, saves, and is resumed."""

Cells = list[list[list[int]]]
"""Memory by mesh, layer kind and entry of the menu. [block]"""
Amount = Floats | float
"""Memory on every mesh, or one number for all meshes. [B]"""


@dataclass(frozen=True)
class Addend:
    """Memory of one unit at a moment above its states. [B], shape (meshes,)."""

    weights: Amount = 0.0
    gradients: Amount = 0.0
    optimizer: Amount = 0.0
    activations: Amount = 0.0
    transient: Amount = 0.0
    largest: Amount = 0.0
    """Memory of which a rank has only the largest of its units. [B]"""

    @property
    def held(self) -> Amount:
        """Sum of all categories but ``largest``. [B], shape (meshes,)."""
        parts = (self.weights, self.gradients, self.optimizer)
        return sum(parts, self.activations + self.transient)

    def where(self, mask: Floats | Ints) -> "Addend":
        """Addend on some meshes, nothing on the others. [B].

        Args:
            mask: 1 where the addend stays. [1], shape (meshes,)
        """
        return Addend(**{f.name: mask * getattr(self, f.name) for f in fields(self)})


@dataclass(frozen=True)
class Moment:
    """One idle moment on every mesh."""

    name: str
    layers: tuple[tuple[Addend, ...], ...]
    """Addends by layer kind and entry of the menu; one entry where all are alike."""
    embedding: Addend = field(default_factory=Addend)
    head: Addend = field(default_factory=Addend)

    def entry(self, kind: int, index: int) -> Addend:
        """Addend of a layer. [B]."""
        row = self.layers[kind]
        return row[index if len(row) > 1 else 0]


@dataclass(frozen=True)
class Held:
    """A unit of the model with its states and the memory of its passes. [B]."""

    owned: Owned
    states: States
    late: Floats
    saved: tuple[Floats, ...]
    """Activations of a micro-batch, by entry of the menu. [B]"""
    transient: tuple[Floats, ...]

    @classmethod
    def of(
        cls,
        pricing: Pricing,
        owned: Owned,
        meshes: Meshes,
        saved: Sequence[Ints],
        transient: Sequence[Ints],
    ) -> "Held":
        """Look up the states of a unit. [B].

        Args:
            saved: Memory held per micro-batch, by entry of the menu. [block]
            transient: Memory held in the backward, by entry of the menu. [block]
        """
        return cls(
            owned,
            state_bytes(pricing, owned, meshes),
            late_gradients(pricing, owned, meshes),
            tuple(BLOCK * size.astype(np.float64) for size in saved),
            tuple(BLOCK * size.astype(np.float64) for size in transient),
        )


def moments_of(
    pricing: Pricing,
    meshes: Meshes,
    layers: Sequence[Held],
    embedding: Held,
    head: Held,
) -> tuple[Moment, ...]:
    """Idle moments of a run, in the order of the run. [B]."""
    fill = _Filler(pricing, meshes, layers, embedding, head)
    return (
        fill.start_up(),
        *fill.backwards(),
        fill.embedding_backward(),
        fill.optimizer_step(),
        fill.parameter_gather(),
        fill.checkpoint_save(),
        fill.resume_load(),
    )


@dataclass(frozen=True)
class _Filler:
    """Fills the idle moments, one method per moment."""

    pricing: Pricing
    meshes: Meshes
    layers: Sequence[Held]
    embedding: Held
    head: Held

    def start_up(self) -> Moment:
        """Memory when weights are loaded and the optimizer has no states yet.

        A 16-bit weight is there beside its quantised form while it is made.
        """

        def without_optimizer(unit: Held) -> Addend:
            forms = quantising_bytes(self.pricing, unit.owned, self.meshes)
            return Addend(optimizer=-unit.states.optimizer, largest=forms)

        return self._alike(START, without_optimizer, roots=False)

    def backwards(self) -> Iterator[Moment]:
        """Moments of the only backward of a step, which makes gradients as it goes.

        While the head has its backward all activations are there and no gradient.
        After it, let g be the gradients and a the activations of a layer. The rank
        holds ``sum of a over the layers to come + sum of g over those gone``, and
        the layer at work. From one layer to the next the sum changes by ``g - a``.
        Where all layers have one sign of ``g - a`` the sum is monotone: the first or
        last layer is the fullest. These are the first two moments. Where signs
        differ, ``sum of max(a, g)`` bounds every order: the third moment.
        """
        late: Floats = np.where(self._late() > 0, 1.0, 0.0)
        mixed: Floats = late * self._signs_differ()
        yield self._passes(STEADY, late, lambda unit, i: (unit.saved[i], 0.0, 0.0))
        yield self._passes(
            BACKWARD_END, late, lambda unit, i: (0.0, unit.late, unit.saved[i])
        )
        if np.any(mixed):
            yield self._passes(BACKWARD, mixed, _larger)

    def embedding_backward(self) -> Moment:
        """Memory when all layers are gone and the embedding makes its gradient."""
        made = embedding_temporaries(self.pricing, self.meshes)
        first, last = made
        return Moment(
            BACKWARD_END,
            tuple((Addend(gradients=unit.late),) for unit in self.layers),
            Addend(
                gradients=self.embedding.late,
                activations=self.embedding.saved[0],
                transient=first,
            ),
            Addend(gradients=self.head.late, transient=last),
        )

    def optimizer_step(self) -> Moment:
        """Memory of the step: all gradients, with what the implementation copies."""

        def stepping(unit: Held) -> Addend:
            copies = step_copies(self.pricing, unit.owned, self.meshes)
            working = step_working(self.pricing, unit.owned, self.meshes)
            return Addend(gradients=unit.late, transient=copies, largest=working)

        return self._alike(STEP, stepping, roots=False)

    def parameter_gather(self) -> Moment:
        """Memory while updated shards become whole, in place or through a buffer.

        A buffer takes one unit at a time.
        """
        zero, recipe = self.meshes.zero, self.pricing.recipe
        through = ((zero == 1) | (zero == 2)) & (not recipe.gathers_in_place)

        def gathering(unit: Held) -> Addend:
            return Addend(largest=through * unit_bytes(self.pricing, unit.owned))

        return self._alike(GATHER, gathering, roots=False)

    def checkpoint_save(self) -> Moment:
        """Memory of a save: of shards as they are, or of units made whole first."""

        def saving(unit: Held) -> Addend:
            together, alone = save_staging(self.pricing, unit.owned, self.meshes)
            return Addend(transient=together, largest=alone)

        return self._alike(SAVE, saving, roots=False)

    def resume_load(self) -> Moment:
        """Memory while moments of the optimizer are loaded beside those it has."""

        def loading(unit: Held) -> Addend:
            copies = load_copies(self.pricing, unit.owned, self.meshes)
            return Addend(optimizer=copies)

        return self._alike(RESUME, loading, roots=False)

    def _alike(
        self, name: str, addend: Callable[[Held], Addend], *, roots: bool
    ) -> Moment:
        """Moment of every unit by one rule; without roots ZeRO-3 keeps no end whole."""
        ends = [addend(self.embedding), addend(self.head)]
        if not roots:
            gone = root_bytes(self.pricing, self.meshes)
            ends = [
                Addend(**_values(end) | {"weights": end.weights - root})
                for end, root in zip(ends, gone, strict=True)
            ]
        return Moment(name, tuple((addend(unit),) for unit in self.layers), *ends)

    def _passes(
        self,
        name: str,
        mask: Floats,
        parts: Callable[[Held, int], tuple[Amount, Amount, Amount]],
    ) -> Moment:
        """Moment of the backward; the head is over, the embedding to come."""
        cells = []
        for unit in self.layers:
            row = []
            for index, transient in enumerate(unit.transient):
                kept, late, again = parts(unit, index)
                cell = Addend(
                    activations=kept, gradients=late, largest=again + transient
                )
                row.append(cell.where(mask))
            cells.append(tuple(row))
        embedding = Addend(activations=self.embedding.saved[0]).where(mask)
        made = self.head.late + tied_gradient(self.pricing, self.meshes)
        head = Addend(gradients=made).where(mask)
        return Moment(name, tuple(cells), embedding, head)

    def _late(self) -> Floats:
        return reduce(np.maximum, [unit.late for unit in self.layers])

    def _signs_differ(self) -> Floats:
        """1 where some layer gains by its backward and another loses."""
        more, less = self.meshes.zeros(), self.meshes.zeros()
        for unit in self.layers:
            for saved in unit.saved:
                more = np.maximum(more, unit.late > saved)
                less = np.maximum(less, unit.late < saved)
        return more * less


def _larger(unit: Held, index: int) -> tuple[Amount, Amount, Amount]:
    """Larger of a layer's gradients and activations, which are never there both."""
    more = np.maximum(unit.late - unit.saved[index], 0.0)
    return unit.saved[index], more, 0.0


def _values(addend: Addend) -> dict[str, Amount]:
    return {f.name: getattr(addend, f.name) for f in fields(addend)}


@dataclass(frozen=True)
class IdleColumns:
    """One moment in whole blocks. Layers have the shape (kinds, entries, meshes)."""

    name: str
    layers: Ints
    largest: Ints
    embedding: tuple[Ints, Ints]
    head: tuple[Ints, Ints]

    @classmethod
    def of(cls, moment: Moment, meshes: Meshes) -> "IdleColumns":
        """Round a moment, once. [block].

        Args:
            moment: The moment. [B]
        """

        def whole(amount: Amount) -> Ints:
            size = np.broadcast_to(np.asarray(amount, dtype=np.float64), len(meshes))
            return np.ceil(size / BLOCK).astype(np.int64)

        rows = moment.layers
        return cls(
            moment.name,
            np.array([[whole(cell.held) for cell in row] for row in rows]),
            np.array([[whole(cell.largest) for cell in row] for row in rows]),
            (whole(moment.embedding.held), whole(moment.embedding.largest)),
            (whole(moment.head.held), whole(moment.head.largest)),
        )

    def at(self, row: int, menu: tuple[int, ...]) -> IdleMoment:
        """Cut out one mesh. [block].

        Args:
            menu: Recompute kinds that layers may choose from. [1]
        """
        entries = menu if self.layers.shape[1] > 1 else (0,) * len(menu)

        def cells(kinds: list[list[int]]) -> tuple[tuple[int, ...], ...]:
            return tuple(tuple(of_kind[i] for i in entries) for of_kind in kinds)

        layers, middle, ends = self._by_mesh
        return IdleMoment(self.name, cells(layers[row]), cells(middle[row]), *ends[row])

    @cached_property
    def _by_mesh(self) -> tuple[Cells, Cells, list[list[int]]]:
        """Layers, and what is beside them, by mesh, kind and entry; ends by mesh."""
        ends = np.stack([*self.embedding, *self.head], axis=1)
        layers, middle = (np.moveaxis(c, -1, 0) for c in (self.layers, self.largest))
        return layers.tolist(), middle.tolist(), ends.tolist()

"""A table and a space of one row, around an inner problem."""

from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import cast

import numpy as np

from planner.cost.memory.memory_moments import IdleColumns
from planner.cost.meshes import Ints, Meshes
from planner.cost.pricing import Pricing
from planner.cost.table.table import CostTable, EndColumns, Unit
from planner.search.space.schedules import SEARCHED
from planner.search.space.space import Space
from planner.specs.search import SearchSpec
from planner.specs.table import EndCosts, IdleMoment, LayerCosts, StageCosts


@dataclass(frozen=True)
class _OneRow(CostTable):
    """Table of one inner problem, with the problem's own class of splits."""

    extra: int = 0
    """Layers that a virtual stage may hold above the balanced count. [1]"""

    def extra_layers(self, stages: Ints, vpp: Ints) -> Ints:  # noqa: ARG002
        """Layers above the balanced count. [1]."""
        return np.full_like(stages, self.extra)


def one_row_table(costs: StageCosts) -> tuple[CostTable, Space]:
    """A table and a space that hold one inner problem and nothing else."""
    row = (1, 0, costs.pp, 1, 1, 1, 1, 1, 1, 0, 1, 1, costs.micro_batches, 0)
    columns = [
        np.array([[[cell] for cell in getattr(k, name)] for k in costs.layers])
        for name in ("forward", "backward", "saved", "transient")
    ]
    singles = ("first_gather", "last_scatter", "p2p", "budget", "scatter_every")
    table = _OneRow(
        _only_shape(costs),
        Meshes.from_rows([row]),
        costs.menu,
        *columns,
        tuple(_unit(layer) for layer in costs.layers),
        _end(costs.embedding),
        _end(costs.head),
        **{name: np.array([getattr(costs, name)]) for name in singles},
        slowdown=np.array([costs.slowdown]),
        idle=tuple(_idle(moment) for moment in costs.idle),
        extra=costs.extra_layers,
    )
    entry = -1 if len(costs.menu) > 1 else 0
    one = [np.array([n]) for n in (0, costs.vpp, SEARCHED.index(costs.schedule), entry)]
    return table, Space(table.meshes, *one, recompute=costs.menu, removed={})


def _unit(priced: LayerCosts | EndCosts) -> Unit:
    names = [field.name for field in fields(Unit)]
    return Unit(*(np.array([getattr(priced, name, 0)]) for name in names))


def _end(end: EndCosts) -> EndColumns:
    names = ("forward", "backward", "saved", "transient")
    return EndColumns(*(np.array([getattr(end, n)]) for n in names), _unit(end))


def _idle(moment: IdleMoment) -> IdleColumns:
    """The columns of one mesh that :meth:`IdleColumns.at` cuts *moment* out of."""

    def column(cells: tuple[tuple[int, ...], ...]) -> Ints:
        return np.array(cells, dtype=np.int64)[:, :, None]

    ends = (
        (np.array([moment.embedding]), np.array([moment.embedding_beside])),
        (np.array([moment.head]), np.array([moment.head_beside])),
    )
    return IdleColumns(moment.name, column(moment.layers), column(moment.beside), *ends)


def _only_shape(costs: StageCosts) -> Pricing:
    """The few facts of a job that the table itself reads."""
    switches = {
        "overlap_param_gather": costs.overlap_gather,
        "overlap_grad_reduce": costs.overlap_scatter,
    }
    fake = SimpleNamespace(
        takes=lambda name, _: np.array([switches[name]]),
        model=SimpleNamespace(layers=costs.layer_count),
        kinds=tuple(range(len(costs.layers))),
        runs=costs.runs,
        search=SearchSpec(),
        profile=SimpleNamespace(step_overhead=costs.overhead / 1e9),
    )
    return cast("Pricing", fake)

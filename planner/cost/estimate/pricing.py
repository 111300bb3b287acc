"""One layout in whole numbers: its row of the table, and its step."""

from dataclasses import dataclass

from planner.cost.estimate.layouts import counts_of, recompute_kinds
from planner.cost.meshes import Meshes
from planner.cost.pipeline.splits import Counts, step_ns
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.cost.workload import Workload
from planner.specs.layouts.layout import Layout
from planner.specs.table import StageCosts


@dataclass(frozen=True)
class Priced:
    """One layout with its row of the table."""

    pricing: Pricing
    layout: Layout
    table: CostTable
    costs: StageCosts
    counts: Counts

    @property
    def step_s(self) -> float:
        """Simulated step, straggler factor included. [s]."""
        return step_ns(self.costs, self.counts) * self.costs.slowdown / 1e9


def price(workload: Workload, layout: Layout, *, timed: bool = True) -> Priced:
    """Fill the table for one layout.

    Args:
        timed: True for times and memory, False for memory alone.
    """
    menu, pricing = recompute_kinds(layout), Pricing.of(workload, layout)
    table = price_meshes(pricing, Meshes.of_layout(layout), menu, timed=timed)
    costs = table.stage_costs(
        0,
        schedule=layout.schedule,
        vpp=layout.vpp,
        menu=tuple(range(len(menu))),
        hosting=tuple(len(pool.stages) for pool in layout.pools),
    )
    return Priced(pricing, layout, table, costs, counts_of(pricing, layout, menu))

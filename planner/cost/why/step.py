"""Terms of a step: causes, the busiest rank, its kinds of layer, the ends."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.cost.estimate.breakdown import (
    Around,
    Work,
    end_passes,
    layer_passes,
    own_factor,
    times_around,
    work_by_rank,
)
from planner.cost.estimate.pricing import Priced
from planner.cost.parameters.data_groups import DataGroups
from planner.cost.pipeline.splits import stages_of
from planner.cost.time.columns import WAITS, Context, Parts
from planner.cost.why.around import (
    DATA_PARALLEL,
    around_terms,
    rest_term,
    straggler_term,
)
from planner.cost.why.facts import in_force, link_sources, memory_sources
from planner.cost.why.layers import layer_compute, layer_recompute
from planner.cost.why.products import head_products
from planner.cost.why.terms import Term
from planner.specs.answer.estimate import WAIT_WORDS, TimeBreakdown

EXPOSED = {
    "tp_comm": "exposed part of gathers and reductions over tensor ranks",
    "cp_comm": "exposed part of the exchange around attention",
    "ep_comm": "exposed part of the all-to-all of tokens and back",
    "dp_comm": "max(t - beside, 0) + contention min(t, beside) + buffer copies",
    "launches": "max(time to launch - time on the GPU, 0)",
    "expert_launches": "waits for the sizes and launches of experts",
    "offload_copies": "exposed part of copies to the host and back",
    "mask_copies": "bytes of the masks / rate of the host link",
}
"""Cause, or part of `other`, to the formula of one pass of a unit. [text]"""
SWITCHES = {
    "tp_comm": ("hidden_tp", "tp_overlap", "gathered_inputs", "hidden_regather"),
    "cp_comm": ("hidden_cp",),
    "ep_comm": ("hidden_ep", "ep_overlap", "expert_dispatch", "dispatch_bytes"),
    "dp_comm": DATA_PARALLEL,
    "launches": ("host_forward", "host_backward", "latency", "cuda_graphs"),
    "expert_launches": ("expert_wait", "expert_launch"),
}
"""Cause to the switches and constants of the stack that move it. [text]"""


@dataclass(frozen=True)
class StepTerms:
    """Terms of the step of one priced layout."""

    priced: Priced

    @property
    def whole(self) -> Term:
        """The step, by cause. [s]."""
        causes = [self.cause(name) for name in TimeBreakdown.model_fields]
        return Term.of_parts("step_time", "step", causes)

    def cause(self, name: str) -> Term:
        """One cause of the step, or one part of its `other`.

        Returns:
            The cause. [s]
        """
        title = WAIT_WORDS.get(name, name)
        factor = own_factor(self.priced.table)
        if name == "straggler":
            slowdown = self.priced.costs.slowdown
            late = straggler_term(self.priced.pricing, self._times, slowdown, factor)
            return Term.of_parts(name, title, [late])
        parts = [part.times(factor) for part in self._parts(name)]
        return Term.of_parts(name, title, parts)

    def _parts(self, name: str) -> list[Term]:
        """Parts of a cause before the user's own factor on the step. [s]."""
        if name == "other":
            return [self._named(wait) for wait in WAIT_WORDS]
        return [self._rank(name), *self._around(name)]

    def _named(self, wait: str) -> Term:
        parts = [self._rank(wait), *self._around(wait)]
        return Term.of_parts(wait, WAIT_WORDS[wait], parts)

    @cached_property
    def _times(self) -> Around:
        priced = self.priced
        return times_around(priced.table, priced.costs, priced.counts)

    @cached_property
    def _busiest(self) -> int:
        """The rank with most work. [1]."""
        return max(range(len(self._work)), key=lambda rank: self._work[rank].total)

    @cached_property
    def _work(self) -> Work:
        priced = self.priced
        return work_by_rank(priced.table, priced.costs, priced.counts)

    @cached_property
    def _here(self) -> tuple[Context, DataGroups]:
        """Columns and groups of the pool that hosts the busiest rank."""
        part = self.priced.table.each[self.priced.costs.pool(self._busiest)]
        context = Context.of(part.pricing, part.meshes)
        return context, DataGroups.of(part.pricing, part.meshes, context.links)

    def _rank(self, name: str) -> Term:
        """The busiest rank's layers and ends under a cause. [s]."""
        costs = self.priced.costs
        stages = stages_of(costs, self._busiest)
        title = (
            f"busiest pipeline rank, {self._busiest} of {costs.pp} "
            f"(stages {', '.join(map(str, stages))})"
        )
        parts = [*self._layers(name), *self._ends(name)]
        return Term.of_parts("rank", title, parts)

    def _layers(self, name: str) -> Iterator[Term]:
        costs, counts = self.priced.costs, self.priced.counts
        context, data = self._here
        entries = counts[list(stages_of(costs, self._busiest))].sum(axis=0)
        every = layer_passes(data, context, costs, counts)
        for (kind, entry), passes in every.items():
            layers, menu = int(entries[kind, entry]), costs.menu[entry]
            layer = context.pricing.kinds[kind]
            term = _exposed(context, name, passes)
            if name == "compute":
                term = layer_compute(context, layer)
            if name == "recompute":
                again = context.pricing.recipe.kind(menu)
                term = layer_recompute(context, layer, again)
            title = (
                f"{layers} {layer.name} layers, recompute {menu}, "
                f"x {costs.passes} micro-batches"
            )
            update = {"name": f"layers.{layer.name}.{menu}", "title": title}
            yield term.model_copy(update=update).times(layers * costs.passes)

    def _ends(self, name: str) -> Iterator[Term]:
        costs = self.priced.costs
        context, data = self._here
        stages = stages_of(costs, self._busiest)
        ends = zip(("embedding", "head"), end_passes(data, context, costs), strict=True)
        for end, (stage, passes) in ends:
            if stage not in stages:
                continue
            term = _exposed(context, name, passes)
            if name == "compute" and end == "head":
                term = _head_compute(context)
            update = {"name": end, "title": f"{end} x {costs.passes} micro-batches"}
            yield term.model_copy(update=update).times(costs.passes)

    def _around(self, name: str) -> list[Term]:
        """Times beside the passes of the busiest rank under a cause. [s]."""
        priced, times = self.priced, self._times
        terms = around_terms(priced.pricing, times, name, priced.costs.p2p)
        pipelined = priced.costs.pp > 1
        if name == ("bubble" if pipelined else "compute"):
            busy = self._work[self._busiest].total
            terms.append(rest_term(times, busy, pipelined=pipelined))
        return terms


def _exposed(context: Context, name: str, passes: tuple[Parts, Parts]) -> Term:
    """One cause of a unit's forward and backward, as they are priced. [s]."""
    pricing = context.pricing
    facts = () if name in WAITS else link_sources(pricing)
    if name == "compute":
        facts = memory_sources(pricing)
    parts = [
        Term(
            name=side,
            title=side,
            value=float(
                np.ravel((transfers.by_cause | transfers.waits).get(name, np.zeros(1)))[
                    0
                ]
            ),
            formula=EXPOSED.get(
                name, "memory_traffic bytes / (efficiency W) + latency"
            ),
            source=facts,
            stack=in_force(pricing, *SWITCHES.get(name, ())),
        )
        for side, transfers in zip(("forward", "backward"), passes, strict=True)
    ]
    return Term.of_parts("unit", "unit", parts)


def _head_compute(context: Context) -> Term:
    """Products, norm and loss of the head, and layers of MTP modules. [s]."""
    model = context.pricing.model
    parts = head_products(context, 1 + model.mtp_layers)
    if model.mtp_layers:
        layer = layer_compute(context, model.mtp_kind, forwards=1)
        named = {"name": "mtp", "title": f"{model.mtp_layers} layers of MTP modules"}
        parts.append(layer.model_copy(update=named).times(model.mtp_layers))
    return Term.of_parts("head", "head", parts)

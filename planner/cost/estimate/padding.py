"""Padding of a plan's rows, and what packing the texts would gain."""

from dataclasses import replace

import numpy as np

from planner.cost.estimate.pricing import price
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.rows import rows_of
from planner.cost.workload import Workload
from planner.specs.answer.estimate import PaddingEstimate
from planner.specs.layouts.layout import Layout


def padding_assumptions(workload: Workload) -> tuple[str, ...]:
    """Say what is assumed of texts that differ in length."""
    training = workload.training
    said = []
    if training.uneven:
        said.append(
            "texts are drawn apart: batches grouped by length have less padding"
        )
    elif training.draws and training.rows == "packed":
        said.append("packed rows are full: the ends that no text fills are left out")
    elif training.padding == "longest":
        said.append(
            "training.lengths is not given: every row is priced at "
            f"{training.seq_len:,} tokens"
        )
    return tuple(said)


def padding_estimate(
    pricing: Pricing, layout: Layout, step_s: float
) -> PaddingEstimate | None:
    """Share of padding of a plan, and its rate against that of packed texts.

    Args:
        step_s: Step of the layout. [s]

    Returns:
        The estimate, none where the job says nothing of its texts' lengths. [-]

    Leaves out the ends of packed rows that no text fills: under a hundredth by best
    fit where texts are much shorter than rows.
    """
    training = pricing.training
    if training.draws is None:
        return None
    row: float = training.seq_len
    if training.uneven:
        row = training.uneven.greatest(layout.micro_batch).mean
    useful = training.step_tokens / step_s
    packed = _packed_rate(pricing, layout)
    own = training.step_tokens / training.sequences
    return PaddingEstimate(
        rows=training.rows,
        text_tokens=training.draws.mean,
        row_tokens=row,
        slowest_row_tokens=_slowest(pricing, layout),
        share=1.0 - own / row,
        useful_tokens_per_s=useful,
        packed_speedup=packed / useful,
    )


def _slowest(pricing: Pricing, layout: Layout) -> float:
    """Tokens of a row of the rank that is last. [token]."""
    tokens = rows_of(pricing, Meshes.of_layout(layout)).tokens
    return float(np.max(tokens))


def _packed_rate(workload: Workload, layout: Layout) -> float:
    """Tokens a second of the same layout, where texts fill its rows. [token/s]."""
    packed = workload.training.model_copy(update={"padding": "packed"})
    step_s = price(replace(workload, training=packed), layout).step_s
    return packed.step_tokens / step_s

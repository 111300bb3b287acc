"""Time of chunked scans, and of dealing their heads to context ranks."""

import numpy as np

from planner.cost.kernels import ELEMENT
from planner.cost.meshes import Floats
from planner.cost.network import collectives as wire
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.hardware.kernels.scans import ScanRate, scan_rate
from planner.models.layers.blocks import ScanBlock


def scan_times(context: Context, block: ScanBlock) -> tuple[Floats, Floats]:
    """Forward and backward time of a chunked scan. [s].

    Whole chunks count, and the tokens of a sequence wait for each other::

        T = F tau / (t R) + s step + launch

    References:
        Fits of ``hardware/calibration/scans.yaml``.
    """
    pricing, rate = context.pricing, rate_of(context.pricing, block)
    span = context.rows.span
    work = block.core_flops(block.attended(pricing.training.span, causal=False))
    # Every rank multiplies the keys and queries of a repeated group again.
    ranks = np.asarray(context.meshes.tp * context.meshes.cp, dtype=float)
    again = block.attended(pricing.training.span, causal=False)
    width = work + again * block.repeated_width(ranks)
    share = context.local / context.meshes.tp
    launch = rate.launch * pricing.profile.latency
    forward = width * share / rate.flops + rate.step * span + launch
    return forward, rate.backward * forward


def rate_of(pricing: Pricing, block: ScanBlock) -> ScanRate:
    """Measured rate of a block's scan on the job's chip."""
    return scan_rate(block.scan, pricing.gpu)


def scan_sources(pricing: Pricing) -> tuple[str, ...]:
    """Say where the rates of a job's scans come from, and what they are borrowed from.

    Returns:
        Sentences, none for a model without scans. [text]
    """
    rates = [
        rate_of(part, kind.attention).source
        for part in pricing.parts
        for kind in pricing.kinds
        if isinstance(kind.attention, ScanBlock)
    ]
    return tuple(dict.fromkeys(rates))


def dealt_times(context: Context, block: ScanBlock) -> tuple[Floats, Floats]:
    """Time of context ranks to deal a scan's heads out, whatever kind attention has.

    Every rank gets some heads of the whole sequence: an all-to-all of what the input
    projections make, and an all-to-all of the scan's output, each way.

    Returns:
        Forward and backward. [s], shape (meshes,)

    References:
        Megatron-LM, core/ssm/mamba_context_parallel.py.
    """
    local = ELEMENT * context.local / context.meshes.tp
    time = context.meshes.zeros()
    ranks = np.asarray(context.meshes.tp * context.meshes.cp, dtype=float)
    for columns in (block.inner_width + block.repeated_width(ranks), block.out_width):
        for group in (context.ulysses, context.ring):
            time = time + wire.all_to_all_time(context.links, columns * local, group)
    return time, time

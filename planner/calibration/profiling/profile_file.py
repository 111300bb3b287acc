"""From times of kernels to the `gpus:` block of a calibration file."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import yaml

from planner.calibration.profiling.fit import (
    BACKWARD,
    Line,
    fit_gemm,
    fit_links,
    fit_stream,
    fit_waves,
    waves,
)
from planner.calibration.profiling.timings import AttentionTiming, Timings
from planner.hardware.reading.escape import comment
from planner.hardware.specs import GpuSpec
from planner.job.calibration_file import SCHEMA

Block = dict[str, Any]
"""Fields of one block of YAML."""


def profile_text(
    gpu: GpuSpec, timings: Timings, *, origin: str, link: str | None = None
) -> str:
    """The calibration file of one machine.

    Args:
        gpu: Datasheet of the machine's GPU. [-]
        timings: Times measured on the machine. [-]
        origin: Origin of the times: date, driver, version of torch. [text]
        link: Link that joins the machine's GPUs, None for the GPU's own. [-]
    """
    block = sections(gpu, timings, origin=origin, link=link)
    file = {"schema": SCHEMA, "gpus": {gpu.name: block}}
    return _notes(timings, origin) + yaml.safe_dump(file, sort_keys=False).rstrip()


def _notes(timings: Timings, origin: str) -> str:
    """Comments on times that are in no section, and on kernels not measured."""
    host = timings.host
    lines = [
        origin,
        f"launch of a small kernel {host.launch * 1e6:.2f} us; pinned copies "
        f"{host.to_device / 1e9:.1f} GB/s to the GPU, {host.to_host / 1e9:.1f} back",
        *(f"not measured: {what}" for what in timings.skipped),
    ]
    return "".join(f"# {comment(line)}\n" for line in lines)


def sections(
    gpu: GpuSpec, timings: Timings, *, origin: str, link: str | None = None
) -> Block:
    """Sections of a GPU's calibration, fitted to measured times.

    Args:
        gpu: Datasheet of the GPU. [-]
        timings: Times measured on the GPU. [-]
        origin: Origin of the times. [text]
        link: Link that joins the GPUs, None for the GPU's own. [-]
    """
    block: Block = {}
    for name, products in (("gemm", timings.gemm), ("grouped_gemm", timings.grouped)):
        fitted = {
            dtype: _gemm(fit_gemm(each, gpu.peak(dtype), gpu.memory_bandwidth), origin)
            for dtype, each in products.items()
        }
        if fitted:
            block[name] = fitted
    if timings.attention:
        block |= _attention(timings.attention, gpu.sm_count, origin)
    if timings.stream:
        block["memory"] = _memory(
            fit_stream(timings.stream, gpu.memory_bandwidth), origin
        )
    if timings.collectives:
        scale_up = _scale_up(timings, origin)
        block |= {"scale_up_on": {link: scale_up}} if link else {"scale_up": scale_up}
    return block


def _source(origin: str, line: Line) -> str:
    return f"{origin}: fit to {line.points} times, median error {line.error:.1%}"


def _gemm(line: Line, origin: str) -> Block:
    inverse, traffic, overhead = line.constants
    return {
        "efficiency": round(1 / inverse, 4),
        "traffic": round(traffic, 4),
        "overhead": _microseconds(overhead),
        "source": _source(origin, line),
    }


def _memory(line: Line, origin: str) -> Block:
    inverse, latency = line.constants
    return {
        "efficiency": round(1 / inverse, 4),
        "op_latency": _microseconds(latency),
        "source": _source(origin, line),
    }


def _attention(timings: Sequence[AttentionTiming], sms: int, origin: str) -> Block:
    """Curves of full GPUs by kernel and head size, and the loss of emptier GPUs."""
    fullest: dict[tuple[str, int], float] = {}
    for t in timings:
        key = t.kernel, t.head_dim
        fullest[key] = max(fullest.get(key, 0.0), waves(t, sms))
    full = [t for t in timings if waves(t, sms) == fullest[t.kernel, t.head_dim]]
    full.sort(key=lambda t: (t.kernel, t.head_dim, t.seq_len))
    groups = groupby(full, key=lambda t: (t.kernel, t.head_dim))
    block: Block = {"attention": [_curve(list(g), sms, origin) for _, g in groups]}
    emptier = _emptier(timings)
    if found := fit_waves(emptier, sms):
        source = f"{origin}: fit to {len(emptier)} times of {emptier[0].kernel}"
        block["attention_waves"] = {
            "forward": round(found[0], 3),
            "backward": round(found[1], 3),
            "source": source,
        }
    return block


def _emptier(timings: Sequence[AttentionTiming]) -> list[AttentionTiming]:
    """The kernel, head size and length with the most numbers of heads."""
    alike: dict[tuple[str, int, int], list[AttentionTiming]] = {}
    for t in timings:
        alike.setdefault((t.kernel, t.head_dim, t.seq_len), []).append(t)
    return max(alike.values(), key=len)


def _curve(timings: Sequence[AttentionTiming], sms: int, origin: str) -> Block:
    first = timings[0]
    return {
        "kernel": first.kernel,
        "head_dim": first.head_dim,
        "causal": True,
        "waves": round(waves(first, sms), 3),
        "seq_len": [t.seq_len for t in timings],
        "forward": [_teraflops(t.flops / t.forward) for t in timings],
        "backward": [_teraflops(BACKWARD * t.flops / t.backward) for t in timings],
        "source": origin,
    }


def _scale_up(timings: Timings, origin: str) -> Block:
    links = fit_links(timings.collectives)
    block: Block = {"ring_bandwidth": _gigabytes(links.ring)}
    if links.switch is not None:
        block["nvls_all_reduce_bandwidth"] = _gigabytes(links.switch)
        block["nvls_min_ranks"] = links.ranks
    return block | {
        "all_to_all_bandwidth": _gigabytes(links.all_to_all),
        "source": f"{origin}: all {links.ranks} GPUs of the machine",
        "all_reduce_curve": [
            [f"{message:.0f} B", _gigabytes(rate)] for message, rate in links.curve
        ],
    }


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.3f} us"


def _teraflops(rate: float) -> str:
    return f"{rate / 1e12:.4g} TFLOP/s"


def _gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.5g} GB/s"

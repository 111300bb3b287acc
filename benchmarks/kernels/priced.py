"""Prices of the kernels that the tables measure, as a short run has them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks.kernels.tables import Shaped
from planner.cost.attention import QUERY_BLOCK
from planner.cost.kernels import ELEMENT, NARROW, GemmRate, gemm_time
from planner.cost.meshes import Floats, Groups
from planner.cost.network.collectives import (
    NO_RATE,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    cluster_fabric,
    dispatch_time,
)
from planner.cost.routing import parts_reached
from planner.hardware.calibration import GemmCalibration, calibration
from planner.hardware.catalog import gpu, resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.models.layers.blocks import Moe

CASTS = {"bf16": (0.0, 0), "fp8": (5.0, 2), "nvfp4": (2.5625, 1)}
"""Bytes moved per cast input and kernels that cast it. The tables time a linear on
bf16 inputs: fp8 reads them for the maximum and again to cast, nvfp4 once; see
collector/trtllm/collect_gemm.py. [B] and [1]"""
EXPERTS_CASTS = {"bf16": (0.0, 0), "fp8": (3.0, 1), "nvfp4": (2.5625, 1)}
"""Those of tokens before they are copied to experts: scales are known, and the
activation writes the second product's inputs; see TensorRT-LLM, quantize_input of
fused_moe_cutlass.py and doActivation of moe_kernels.cu. [B] and [1]"""


def gemm(kernel: Shaped) -> float:
    """Time of a dense product and of the cast of its input, in a short run.

    Args:
        kernel: A kernel of the table `gemm`.

    Returns:
        Priced time. [s]
    """
    name, kind = kernel.key["gpu"], kernel.key["type"]
    rows, outputs, inputs = kernel.size, kernel.number("n"), kernel.number("k")
    rate = product_rate(name, kind, calibration(name, SHIPPED).gemm[kind])
    alone = gemm_time(rate, *map(_one, (rows, outputs, inputs)))
    return float(alone[0]) + cast(name, kind, rows * inputs)


def product_rate(name: str, kind: str, entry: GemmCalibration) -> GemmRate:
    """Constants of a product in a short run: without `sustained`.

    Args:
        name: GPU. [text]
        kind: Number format. [text]
        entry: Calibrated constants. [-]

    Returns:
        The constants. [-]
    """
    chip = gpu(name, SHIPPED)
    peak = {"fp8": chip.peak_fp8, "nvfp4": chip.peak_fp4}.get(kind, chip.peak_bf16)
    assert peak is not None
    short = peak / entry.sustained
    return GemmRate.of(entry, chip, short, element=NARROW.get(kind, ELEMENT))


def cast(
    name: str,
    kind: str,
    elements: float,
    casts: Mapping[str, tuple[float, int]] = CASTS,
) -> float:
    """Time to cast inputs below half precision.

    Args:
        name: GPU. [text]
        kind: Number format. [text]
        elements: Numbers that are cast. [1]
        casts: Number format to bytes per number and kernels. [B] and [1]

    Returns:
        Time, zero in half precision. [s]
    """
    moved, kernels = casts[kind]
    memory = calibration(name, SHIPPED).memory
    rate = gpu(name, SHIPPED).memory_bandwidth * memory.efficiency
    return moved * elements / rate + kernels * memory.op_latency


def experts(kernel: Shaped) -> float:
    """Time of the grouped products of one rank with all experts, in a short run.

    Args:
        kernel: A kernel of the table `experts`, gated experts.

    Returns:
        Priced time without permutation and activation, which the engines fuse. [s]
    """
    name, kind = kernel.key["gpu"], kernel.key["type"]
    own = calibration(name, SHIPPED)
    entry = own.grouped_gemm["bf16"]
    if kind != "bf16":
        dense = own.gemm
        level = entry.efficiency / entry.sustained * dense["bf16"].sustained
        short = dense[kind].efficiency / dense[kind].sustained
        less = short * dense["bf16"].sustained / dense["bf16"].efficiency
        update = {"efficiency": level * less, "ramp": dense[kind].ramp}
        entry = entry.model_copy(update=update)
    rate = product_rate(name, kind, entry)
    hidden, inner = kernel.number("hidden_size"), kernel.number("inter_size")
    copies = kernel.size * kernel.number("topk")
    read = min(kernel.number("num_experts"), copies) - 1
    seconds = cast(name, kind, kernel.size * hidden, EXPERTS_CASTS)
    for outputs, inputs in ((2 * inner, hidden), (hidden, inner)):
        alone = gemm_time(rate, *map(_one, (copies, outputs, inputs)))
        weights = rate.element * read * outputs * inputs / rate.bandwidth
        seconds += float(alone[0]) + weights
    return seconds


def attention(kernel: Shaped) -> float:
    """Time of causal attention forward by the fastest kernel that is calibrated.

    Args:
        kernel: A kernel of the table `attention`.

    Returns:
        Priced time. [s]
    """
    own, chip = calibration(kernel.key["gpu"], SHIPPED), gpu(kernel.key["gpu"], SHIPPED)
    width, heads = kernel.number("head_dim"), kernel.number("num_heads")
    flops = 2.0 * kernel.size**2 * heads * width
    waves = heads * kernel.size / QUERY_BLOCK / chip.sm_count
    empty = own.attention_waves.forward
    times = []
    for curve in own.attention:
        if not curve.causal or curve.head_dim != width:
            continue
        lengths = np.log2(np.array(curve.seq_len, dtype=np.float64))
        rate = np.interp(np.log2(kernel.size), lengths, np.array(curve.forward))
        there = 1.0 if curve.waves is None else 1.0 + empty / curve.waves
        times.append(flops / rate * max((1.0 + empty / waves) / there, 1.0))
    return float(min(times))


def collective(kernel: Shaped) -> float:
    """Time of a collective inside a node.

    Args:
        kernel: A kernel of the table `nccl`.

    Returns:
        Priced time. [s]
    """
    name = kernel.key["gpu"]
    group = _group(name, kernel.number("num_gpus"))
    links = replace(
        cluster_fabric(_topology(name), calibration(name, SHIPPED)), nvls=NO_RATE
    )
    return float(COLLECTIVES[kernel.key["op_name"]](links, _one(kernel.size), group)[0])


def exchange(kernel: Shaped) -> float:
    """Time of a deduplicated exchange of tokens with experts: fp8 there, bf16 back.

    Args:
        kernel: A kernel of the table `deepep`: 256 experts of which 8, width 7168.

    Returns:
        Priced time. [s]
    """
    name, nodes = kernel.key["gpu"], kernel.number("nodes")
    model = Moe(hidden=7168, experts=256, top_k=8, ffn=2048, shared_ffn=0)
    here = _topology(name)
    group = _group(name, nodes * here.cluster.node.gpus_per_node)
    width = 1 if kernel.key["way"] == "dispatch" else ELEMENT
    sent = float(width * model.hidden * kernel.size)
    time = dispatch_time(
        cluster_fabric(here, calibration(name, SHIPPED)),
        sent * parts_reached(model, group.size),
        sent * parts_reached(model, group.domains),
        group,
    )
    return float(time[0])


def _group(name: str, ranks: int) -> Groups:
    """Neighbouring ranks of a GPU's cluster."""
    here = _topology(name)
    seen = here.group(((ranks, 1),))
    return Groups(
        size=np.array([seen.size]),
        ranks_per_domain=np.array([seen.ranks_per_domain]),
        domains=np.array([seen.domains]),
        intra=np.array([seen.intra]),
        ring_bandwidth=_one(seen.ring_bandwidth),
        all_to_all_bandwidth=_one(seen.all_to_all_bandwidth),
        off_domain=_one(seen.off_domain_fraction),
        inside_share=_one(seen.scale_up_bandwidth / here.fabric.full_bandwidth),
    )


COLLECTIVES: dict[str, Callable[..., Floats]] = {
    "all_gather": all_gather_time,
    "reduce_scatter": all_gather_time,
    "all_reduce": all_reduce_time,
    "alltoall": all_to_all_time,
}
NODES = {
    "a100-sxm4-80gb": "dgx-a100-80gb",
    "h100-sxm5-80gb": "dgx-h100",
    "h200-sxm-141gb": "dgx-h200",
    "b200-sxm-180gb": "dgx-b200",
    "b300-sxm-288gb": "dgx-b300",
    "gb200-186gb": "gb200-nvl72",
    "gb300-279gb": "gb300-nvl72",
    "l40s": "server-l40s-8",
    "rtx-pro-6000-blackwell": "server-rtx-pro-6000-8",
}
"""GPU to a node that has it. [text]"""


@cache
def _topology(name: str) -> ClusterTopology:
    """Nodes of a GPU, in whole racks where it comes in racks."""
    spec = {"name": name, "node": NODES[name], "nodes": 72, "sources": {"*": "none"}}
    return ClusterTopology(resolve_cluster(ClusterSpec.model_validate(spec), SHIPPED))


def _one(number: float) -> Floats:
    return np.array([float(number)])

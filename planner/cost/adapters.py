"""Low-rank adapters beside frozen linears: their parameters, GEMMs and inputs."""

import numpy as np

from planner.cost.kernels import ELEMENT, gemm_rate, gemm_time, memory_time
from planner.cost.meshes import Floats, Meshes
from planner.cost.workload import Workload
from planner.models.blocks import LayerKind, Moe
from planner.models.parts import Gemm

_OF_TARGET = {
    "qkv": ("qkv", "q", "q_a", "q_b", "kv_a", "kv_b"),
    "proj": ("attention_out",),
    "fc1": ("fc1", "shared_fc1", "expert_fc1"),
    "fc2": ("fc2", "shared_fc2", "expert_fc2"),
}
_INPUTS = {
    "attention_norm_output": ("qkv", "q", "q_a", "kv_a"),
    "ffn_norm_output": ("fc1", "shared_fc1"),
    "activation": ("fc2",),
    "shared_activation": ("shared_fc2",),
    "expert_input": ("expert_fc1",),
    "expert_activation": ("expert_fc2",),
}
"""Saved tensors that only a weight gradient needs, and the GEMMs that read them."""
QUANTISED_BYTES = 0.516
"""NF4: 4 bits and a doubly quantised scale per 64 weights, 0.127 bits. [B]"""
HALF = 2
"""Bytes of a 16-bit number. [B]"""


def carries(workload: Workload, name: str) -> bool:
    """Whether a GEMM trains something: its weight, or an adapter beside it.

    Args:
        workload: The job. [-]
        name: Name of the GEMM. [text]

    Returns:
        True for every GEMM of a full training. [-]
    """
    training = workload.training
    if not training.frozen:
        return True
    return any(name in _OF_TARGET[target] for target in training.lora.modules)


def is_kept(workload: Workload, layer: LayerKind, tensor: str) -> bool:
    """Whether a saved tensor is needed when only adapters train.

    The input gradient of a frozen linear needs its weight alone, so an input is
    kept only where an adapter reads it; the inputs of norms, attention and
    activations stay.

    Args:
        workload: The job. [-]
        layer: Kind of layer. [-]
        tensor: Name of the saved tensor. [text]

    Returns:
        True for everything in a full training. [-]
    """
    readers = _INPUTS.get(tensor, ())
    if tensor == "attention_norm_output" and layer.parallel:
        readers = (*readers, *_INPUTS["ffn_norm_output"])
    if not workload.training.frozen or not readers:
        return True
    present = {gemm.name for gemm in layer.gemms()}
    return any(carries(workload, name) for name in readers if name in present)


def adapter_parameters(
    workload: Workload, layer: LayerKind, meshes: Meshes
) -> tuple[Floats, Floats]:
    """Adapters of one layer on a rank: ``rho (i + o) / t`` for each linear.

    Both factors are split over the tensor group of their linear.

    Args:
        workload: The job. [-]
        layer: Kind of layer. [-]
        meshes: Any meshes. [-]

    Returns:
        Dense and expert parameters. [1], shape (meshes,)

    References:
        Hu et al. 2021, arXiv 2106.09685; Megatron-Bridge's ParallelLinearAdapter.
    """
    dense, expert = np.zeros(len(meshes)), np.zeros(len(meshes))
    rank = workload.training.lora.rank
    for gemm in layer.gemms():
        if gemm.name == "router" or not carries(workload, gemm.name):
            continue
        size = float(rank * (gemm.inputs + gemm.outputs))
        if gemm.split.startswith("expert"):
            assert isinstance(layer.ffn, Moe)
            expert = expert + layer.ffn.experts * size / (meshes.ep * meshes.etp)
        else:
            dense = dense + size / meshes.tp
    return dense, expert


def adapter_widths(workload: Workload, layer: LayerKind) -> float:
    """Columns per token that adapters keep between their two factors.

    Args:
        workload: The job. [-]
        layer: Kind of layer. [-]

    Returns:
        Columns over all tensor ranks. [1]
    """
    training = workload.training
    if not training.frozen:
        return 0.0
    calls = (g.calls for g in layer.gemms() if _adapts(workload, g))
    return float(training.lora.rank * sum(calls))


def _adapts(workload: Workload, gemm: Gemm) -> bool:
    return gemm.name != "router" and carries(workload, gemm.name)


def adapter_times(
    workload: Workload, gemm: Gemm, rows: Floats, outputs: Floats, inputs: Floats
) -> tuple[Floats, Floats]:
    """What one frozen linear costs beside its own two GEMMs.

    Its adapter's two GEMMs and the addition of their result, forward; their four
    and one addition, backward; for NF4 weights the dequantisation of both passes.

    Args:
        workload: The job. [-]
        gemm: The linear. [-]
        rows: Its tokens. [1], shape (meshes,)
        outputs: Its columns on a rank. [1], shape (meshes,)
        inputs: Its inputs on a rank. [1], shape (meshes,)

    Returns:
        Forward and backward. [s], shape (meshes,)
    """
    forward, backward = np.zeros(len(rows)), np.zeros(len(rows))
    if workload.training.method == "qlora" and gemm.name != "router":
        moved = (QUANTISED_BYTES + HALF) * inputs * outputs
        once = memory_time(workload, moved, 1)
        forward, backward = forward + once, backward + once
    if not _adapts(workload, gemm):
        return forward, backward
    rate = gemm_rate(workload, narrow=False)
    inner = np.full(len(rows), float(workload.training.lora.rank))
    forward = forward + (
        gemm_time(rate, rows, inner, inputs)
        + gemm_time(rate, rows, outputs, inner)
        + memory_time(workload, 3.0 * ELEMENT * rows * outputs, 1)
    )
    backward = backward + (
        gemm_time(rate, rows, inner, outputs)
        + gemm_time(rate, rows, inputs, inner)
        + gemm_time(rate, inner, outputs, rows, wgrad=True)
        + gemm_time(rate, inputs, inner, rows, wgrad=True)
        + memory_time(workload, 3.0 * ELEMENT * rows * inputs, 1)
    )
    return forward, backward

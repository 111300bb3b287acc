"""Low-rank adapters beside frozen linears: their parameters and inputs."""

from collections.abc import Iterator, Mapping
from functools import cache

from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.quantised import HALF
from planner.cost.workload import Workload
from planner.models.layers.blocks import LayerKind, Moe
from planner.models.layers.linears import linear_names, linears
from planner.models.layers.parts import Gemm
from planner.specs.training import LoraSpec

MEGATRON_TARGETS = {
    "qkv": ("qkv", "q", "q_a", "q_b", "kv_a", "kv_b", "scan_in"),
    "proj": ("attention_out",),
    "fc1": ("fc1", "shared_fc1", "expert_fc1"),
    "fc2": ("fc2", "shared_fc2", "expert_fc2"),
}
"""GEMMs that a target under Megatron's names covers, each with one adapter."""
_INPUTS = {
    "attention_norm_output": (
        *("qkv", "q", "q_a", "kv_a", "compressor"),
        *("scan_in", "scan_gates", "scan_low", "index_k", "index_weights"),
    ),
    "latents": ("q_b", "kv_b", "index_q", "scan_high"),
    "attention_output": ("attention_out", "out_a", "beside_out"),
    "ffn_norm_output": ("fc1", "shared_fc1"),
    "activation": ("fc2",),
    "shared_activation": ("shared_fc2",),
    "expert_input": ("expert_fc1",),
    "expert_activation": ("expert_fc2",),
}
"""Saved tensors that linears read, and the GEMMs that read them."""
_KEPT_ANYWAY = frozenset({"latents", "attention_output"})
"""Saved tensors that the backward of a norm or of the attention needs."""
SINGLE = 4
"""Bytes of an fp32 number. [B]"""
MASK = 1
"""Bytes per element of a dropout's mask. [B]"""


@cache
def adapter_outputs(
    lora: LoraSpec, layer: LayerKind, family: str
) -> Mapping[str, tuple[int, ...]]:
    """Adapters beside each GEMM of a layer, by their output columns.

    Megatron's names give one adapter to a fused GEMM; the names of transformers one
    to each linear layer that the model's code has in its place.

    Args:
        family: Hugging Face model type. [text]

    References:
        Megatron-Bridge, peft/lora.py; peft, tuners/lora/layer.py.
    """
    ranks: dict[str, tuple[int, ...]] = {}
    names = set(lora.modules) if lora.modules else set(linear_names(family))
    for gemm in layer.gemms():
        if any(gemm.name in MEGATRON_TARGETS.get(name, ()) for name in names):
            ranks[gemm.name] = (gemm.outputs,)
    for linear in linears(layer, family):
        if linear.name in names - MEGATRON_TARGETS.keys():
            ranks[linear.gemm] = (*ranks.get(linear.gemm, ()), linear.outputs)
    return ranks


def adapters_beside(workload: Workload, layer: LayerKind, name: str) -> tuple[int, ...]:
    """Adapters beside one GEMM, by their output columns.

    Args:
        layer: Kind of layer; a frozen layer carries none. [-]
    """
    training = workload.training
    if not training.frozen or layer.role != "trained":
        return ()
    family = workload.model.family
    return adapter_outputs(training.lora, layer, family).get(name, ())


def is_frozen(workload: Workload, layer: LayerKind) -> bool:
    """Tell if a layer's own weights stay as they are.

    Returns:
        True with adapters, and for the layers that the job freezes. [-]
    """
    return workload.training.frozen or layer.role != "trained"


def carries(workload: Workload, layer: LayerKind, name: str) -> bool:
    """Tell if a GEMM trains something: its weight, or an adapter beside it.

    Returns:
        True for every GEMM of a full training. [-]
    """
    if not is_frozen(workload, layer):
        return True
    return bool(adapters_beside(workload, layer, name))


def is_kept(workload: Workload, layer: LayerKind, tensor: str) -> bool:
    """Tell if a saved tensor is kept where weights are frozen.

    The input gradient of a frozen linear needs its weight alone. An input is thus
    kept only where an adapter reads it as it is. The inputs of norms, attention and
    activations stay.

    Returns:
        True for everything in a full training. [-]
    """
    if not is_frozen(workload, layer) or tensor in _KEPT_ANYWAY:
        return True
    if tensor not in _INPUTS:
        return True
    return not copy_bytes(workload) and any(
        carries(workload, layer, gemm.name) for gemm in _readers(layer, tensor)
    )


def copied_bytes(workload: Workload, layer: LayerKind, tensor: str) -> float:
    """Bytes per token that adapters keep beside a tensor that they read.

    For each adapter: with dropout the dropped input and a mask, 2 + 1 B an element;
    in fp32 a copy of 4 B, or 4 + 1 B dropped.

    Returns:
        Memory over all tensor ranks. [B]

    References:
        peft, tuners/lora/layer.py: lora_B(lora_A(dropout(x)));
        PyTorch, native_dropout keeps a boolean mask.
    """
    copy_width = copy_bytes(workload)
    if not copy_width or not is_frozen(workload, layer):
        return 0.0
    return copy_width * sum(
        len(adapters_beside(workload, layer, gemm.name)) * gemm.inputs * gemm.calls
        for gemm in _readers(layer, tensor)
    )


def copy_bytes(workload: Workload) -> int:
    """Bytes per element of an adapter's own copy of its input.

    Returns:
        Memory, none where the adapter reads the layer's own input. [B]
    """
    lora = workload.training.lora
    wide = adapter_width(workload)
    if lora.dropout:
        return wide + MASK
    return wide if wide == SINGLE else 0


def adapter_width(workload: Workload) -> int:
    """Bytes of a number of the adapters. [B]."""
    return SINGLE if workload.training.lora.precision == "fp32" else HALF


def _readers(layer: LayerKind, tensor: str) -> list[Gemm]:
    """GEMMs of a layer that read one of its saved tensors."""
    names = _INPUTS.get(tensor, ())
    if tensor == "attention_norm_output" and layer.parallel and layer.norms == 1:
        names = (*names, *_INPUTS["ffn_norm_output"])
    return [gemm for gemm in layer.gemms() if gemm.name in names]


def adapter_parameters(
    workload: Workload, layer: LayerKind, meshes: Meshes
) -> tuple[Floats, Floats]:
    """Adapters of one layer on a rank: ``rho (i + o) / t`` for each linear.

    Both factors are split over the tensor group of their linear. With magnitudes ``o``
    more.

    References:
        Hu et al. 2021, arXiv 2106.09685; Megatron-Bridge's ParallelLinearAdapter.
    """
    dense, expert = meshes.zeros(), meshes.zeros()
    for gemm, size in _sizes(workload, layer, workload.training.lora.rank):
        if gemm.split.startswith("expert"):
            assert isinstance(layer.ffn, Moe)
            expert = expert + layer.ffn.experts * size / (meshes.ep * meshes.etp)
        else:
            dense = dense + size / meshes.tp
    return dense, expert


def adapter_sums(
    workload: Workload, layer: LayerKind, meshes: Meshes
) -> tuple[Floats, Floats]:
    """Rows and columns of a layer's adapters on a rank, as Adafactor keeps them.

    ``(rho + i) + (o + rho)`` for each pair of factors, ``o`` more for magnitudes; the
    inner width is whole on every tensor rank.

    Returns:
        Elements of dense and of expert adapters. [1], shape (meshes,)
    """
    dense, expert = meshes.zeros(), meshes.zeros()
    inner = 2.0 * workload.training.lora.rank
    for gemm, size in _sizes(workload, layer, 1):
        pairs = len(adapters_beside(workload, layer, gemm.name))
        if gemm.split.startswith("expert"):
            assert isinstance(layer.ffn, Moe)
            parameters = size / meshes.etp + pairs * inner
            expert = expert + layer.ffn.experts / meshes.ep * parameters
        else:
            dense = dense + size / meshes.tp + pairs * inner
    return dense, expert


def _sizes(
    workload: Workload, layer: LayerKind, rank: int
) -> Iterator[tuple[Gemm, float]]:
    """GEMMs that carry adapters, each with ``rho (i + o)`` of one copy. [1].

    Magnitudes are ``o`` more.
    """
    rows = rank if workload.training.lora.dora is None else rank + 1
    for gemm in layer.gemms():
        outputs = adapters_beside(workload, layer, gemm.name)
        if outputs:
            wide = rank * len(outputs) * gemm.inputs
            yield gemm, float(wide + rows * sum(outputs))


def adapter_widths(workload: Workload, layer: LayerKind) -> float:
    """Columns per token that adapters keep between their two factors.

    Beside magnitudes also the adapter's output and the frozen layer's, which is in 16
    bits unless a dropped input makes it anew.

    Returns:
        Columns over all tensor ranks, in 16-bit numbers. [1]
    """
    lora = workload.training.lora
    calls = sum(
        gemm.calls * len(adapters_beside(workload, layer, gemm.name))
        for gemm in layer.gemms()
    )
    wide = adapter_width(workload) / HALF
    inner = lora.rank * calls * wide
    if not lora.dora:
        return float(inner)
    outputs = sum(
        gemm.calls * sum(adapters_beside(workload, layer, gemm.name))
        for gemm in layer.gemms()
    )
    return float(inner + outputs * (wide + (wide if lora.dropout else 1.0)))

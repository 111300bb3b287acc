"""Linear layers of a block under the names that transformers gives them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from planner.hardware.reading.yaml_text import parse_yaml
from planner.models.layers.attention import Attention
from planner.models.layers.blocks import (
    CompressedAttention,
    LayerKind,
    ScanBlock,
    SideBySide,
)
from planner.models.layers.feedforward import Mlp

_WHOLE = (
    *("q", "q_a", "q_b", "kv_a", "kv_b"),
    *("index_q", "index_k", "index_weights"),
    *("laurel_in", "laurel_out", "altup_router", "altup_predict", "altup_correct"),
    *("out_a", "input_gate", "input_out", "latent_in", "latent_out", "block_out"),
)
"""Products that are one linear layer each, but for those that a block fuses. [text]"""

_FUSED = (ScanBlock, CompressedAttention)
"""Blocks that say themselves what their products are made of. [-]"""


@dataclass(frozen=True)
class Linear:
    """One linear layer, which is a GEMM or a part of a fused GEMM.

    Args:
        name: Name of the layer in the model's code. [text]
        gemm: GEMM that the layer is part of. [text]
        inputs: Columns of the input. [1]
        outputs: Columns of the output. [1]
    """

    name: str
    gemm: str
    inputs: int
    outputs: int

    @property
    def weights(self) -> int:
        """Weights, without a bias: inputs * outputs."""
        return self.inputs * self.outputs


@cache
def linear_names(family: str) -> tuple[str, ...]:
    """Names of the linear layers that a family's blocks may have.

    Args:
        family: Hugging Face model type. [text]

    Returns:
        Names in forward order; none of a family that the table lacks. [text]
    """
    return tuple(_families().get(family, {}))


@cache
def linears(layer: LayerKind, family: str) -> tuple[Linear, ...]:
    """Linear layers of one block, as transformers builds them.

    A name without its part in the block is left out: no gate in a plain MLP, no MLP
    where all experts are routed.

    Args:
        layer: Kind of layer. [-]
        family: Hugging Face model type. [text]

    Returns:
        Linear layers, each under its name. [-]

    Leaves out routed experts and routers, which are tensors and no linear layers.
    """
    widths = dict(_parts(layer))
    inputs = {gemm.name: gemm.inputs for gemm in layer.gemms()}
    return tuple(
        Linear(
            name,
            widths[parts[0]][0],
            inputs[widths[parts[0]][0]],
            sum(widths[part][1] for part in parts),
        )
        for name, layers in _families().get(family, {}).items()
        for parts in layers
        if all(part in widths for part in parts)
    )


@cache
def split_widths(layer: LayerKind) -> Mapping[str, tuple[int, ...]]:
    """Output columns of the weights that a fused GEMM stands for, by name of the GEMM.

    Returns:
        Columns of Q, K and V apart, and of gate and up; the whole for all others.
        [1], shape (weights,)
    """
    found: dict[str, tuple[int, ...]] = {}
    for _, (gemm, columns) in _parts(layer):
        found[gemm] = (*found.get(gemm, ()), columns)
    whole: dict[str, tuple[int, ...]] = {
        gemm.name: (gemm.outputs,) for gemm in layer.gemms()
    }
    if not isinstance(layer.ffn, Mlp) and layer.ffn.gated:
        whole["expert_fc1"] = (layer.ffn.ffn, layer.ffn.ffn)
    return whole | found


def _parts(layer: LayerKind) -> Iterator[tuple[str, tuple[str, int]]]:
    """Parts of a block's GEMMs: name to the GEMM and the part's columns."""
    present = {gemm.name: gemm.outputs for gemm in layer.gemms()}
    attention = layer.attention
    if isinstance(attention, SideBySide):
        yield from _queries(attention.beside)
    if isinstance(attention, Attention) and "qkv" in present:
        yield from _queries(attention)
    fused = attention.fused if isinstance(attention, _FUSED) else ()
    apart = {gemm for _, gemm, _ in fused}
    for name in _WHOLE:
        if name in present and name not in apart:
            yield name, (name, present[name])
    yield from ((part, (gemm, columns)) for part, gemm, columns in fused)
    if isinstance(attention, SideBySide):
        yield "out", ("beside_out", present["beside_out"])
    if isinstance(attention, ScanBlock):
        yield "scan_out", ("attention_out", present["attention_out"])
    elif "attention_out" in present:
        yield "out", ("attention_out", present["attention_out"])
    yield from _dense_parts(layer, present)


def _queries(attention: Attention) -> Iterator[tuple[str, tuple[str, int]]]:
    """Queries, and the keys and values that have weights of their own."""
    keys = attention.kv_heads * attention.head_dim
    yield "q", ("qkv", attention.out_width + attention.gate_width)
    made = ("k", "v")[: attention.key_matrices]
    yield from ((part, ("qkv", keys)) for part in made)


def _dense_parts(
    layer: LayerKind, present: Mapping[str, int]
) -> Iterator[tuple[str, tuple[str, int]]]:
    """Parts of a dense feed-forward half, or of the shared experts."""
    dense = layer.ffn if isinstance(layer.ffn, Mlp) else layer.ffn.shared
    prefix = "" if isinstance(layer.ffn, Mlp) else "shared_"
    if f"{prefix}fc1" not in present:
        return
    for part in ("gate", "up") if dense.gated else ("up",):
        yield part, (f"{prefix}fc1", dense.ffn)
    yield "down", (f"{prefix}fc2", present[f"{prefix}fc2"])


@cache
def _families() -> Mapping[str, Mapping[str, list[list[str]]]]:
    """The table of names, by family."""
    text = files("planner.models.layers").joinpath("linears.yaml").read_text("utf-8")
    table: dict[str, Mapping[str, list[list[str]]]] = parse_yaml(text)["families"]
    return table

"""Sizes of a model in launch files, against the model that a user names."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.errors import BadInputError
from planner.models.architecture import Architecture
from planner.models.layers.attention import Attention, LatentAttention
from planner.models.layers.feedforward import Mlp, Moe


@dataclass(frozen=True)
class Size:
    """One size that a file states.

    Attributes:
        what: Name of the size in `KNOWN`. [text]
        value: Value as stated, or the name of a kind. [-]
        field: Option or key that states the size. [text]
        file: File that states the size; empty where unknown. [text]
        multiple: Number of which the tool makes the size a multiple. [1]
    """

    what: str
    value: int | str
    field: str
    file: str = ""
    multiple: int = 1


def rounded(count: int, multiple: int) -> int:
    """Count rounded up to a multiple. [1]."""
    return -(-count // multiple) * multiple


def _heads(model: Architecture) -> set[int]:
    return {kind.attention.heads for kind in model.kinds}


def _groups(model: Architecture) -> set[int]:
    attentions = (kind.attention for kind in model.kinds)
    return {a.kv_heads for a in attentions if isinstance(a, Attention)}


def _widths(model: Architecture) -> set[int]:
    """Inner widths of dense blocks, and of one expert."""
    return {kind.ffn.ffn for kind in model.kinds if isinstance(kind.ffn, Mlp | Moe)}


def _experts(model: Architecture, name: str) -> set[int]:
    blocks = (kind.ffn for kind in model.kinds)
    return {getattr(block, name) for block in blocks if isinstance(block, Moe)}


def _latent(model: Architecture, name: str) -> set[int]:
    attentions = (kind.attention for kind in model.kinds)
    found = {getattr(a, name) for a in attentions if isinstance(a, LatentAttention)}
    return found - {None, 0}


def _windows(model: Architecture) -> set[int]:
    windows = (getattr(kind.attention, "window", None) for kind in model.kinds)
    return {window for window in windows if window}


def _head_widths(model: Architecture) -> set[int]:
    attentions = (kind.attention for kind in model.kinds)
    return {a.head_dim for a in attentions if isinstance(a, Attention)}


KNOWN: dict[str, Callable[[Architecture], Iterable[int | str]]] = {
    # NullTokenizer adds a token of its own to those that an option counts.
    "vocabulary": lambda model: {model.vocab, model.vocab - 1},
    "positions": lambda model: {
        "learned_absolute" if model.learned_positions else "rope"
    },
    "layers": lambda model: {model.layers},
    "width": lambda model: {model.hidden},
    "heads": _heads,
    "key and value heads": _groups,
    "feed-forward width": _widths,
    "experts": lambda model: _experts(model, "experts"),
    "experts of a token": lambda model: _experts(model, "top_k"),
    "width of shared experts": lambda model: _experts(model, "shared_ffn"),
    "prediction layers": lambda model: {model.mtp_layers} - {0},
    "tokens of a window": _windows,
    "head width": _head_widths,
    "latent attention": lambda model: {1} if _latent(model, "kv_rank") else set(),
    "latent width of keys": lambda model: _latent(model, "kv_rank"),
    "latent width of queries": lambda model: _latent(model, "q_rank"),
}
"""Values of a size in the layers of a model; empty where no layer has the size."""
OF_ONE_KIND = (
    "key and value heads",
    "head width",
    "latent width of keys",
    "latent width of queries",
)
"""Sizes that one kind of attention has, and others not, whatever a file says. [text]"""
MEGATRON = {
    "num_layers": "layers",
    "hidden_size": "width",
    "num_attention_heads": "heads",
    "num_query_groups": "key and value heads",
    "ffn_hidden_size": "feed-forward width",
    "moe_ffn_hidden_size": "feed-forward width",
    "num_experts": "experts",
    "moe_router_topk": "experts of a token",
    "moe_shared_expert_intermediate_size": "width of shared experts",
    "mtp_num_layers": "prediction layers",
    "window_size": "tokens of a window",
    "kv_channels": "head width",
    "multi_latent_attention": "latent attention",
    "kv_lora_rank": "latent width of keys",
    "q_lora_rank": "latent width of queries",
}
"""Size by argument of Megatron-LM. [text]"""
HUGGING_FACE = {
    "num_hidden_layers": "layers",
    "n_layer": "layers",
    "hidden_size": "width",
    "n_embd": "width",
    "num_attention_heads": "heads",
    "n_head": "heads",
    "num_local_experts": "experts",
    "n_routed_experts": "experts",
}
"""Size by field of a config.json. [text]"""


def sizes_of(
    given: Mapping[str, Any],
    names: Mapping[str, str],
    *,
    file: str = "",
    spelled: Callable[[str], str] = str,
) -> tuple[Size, ...]:
    """Sizes among the values of a file."""
    counts = ((name, what, _count(given.get(name))) for name, what in names.items())
    return tuple(
        Size(what, count, spelled(name), file) for name, what, count in counts if count
    )


def _count(value: object) -> int:
    """A whole number, a switch that is on as 1, a window by its reach; else 0. [1]."""
    if isinstance(value, str) and re.fullmatch(r"\(?\d+,\s*\d+\)?", value):
        value = [int(each) for each in re.findall(r"\d+", value)]
    if isinstance(value, list | tuple) and value and type(value[0]) is int:
        return value[0] + 1 if value[0] > 0 else 0
    return max(value, 0) if isinstance(value, int) else 0


def refuse_other_model(sizes: Sequence[Size], model: Architecture, named: str) -> None:
    """Refuse a model whose sizes differ from the sizes in the files.

    Raises:
        BadInputError: A size differs; names file, option and both values.
    """
    for size, its in _clashes(sizes, model):
        has = " or ".join(_shown(value) for value in its) or "no"
        raise BadInputError(
            f"{named} has {has} {size.what}, the files have another model",
            file=size.file,
            field=size.field,
            value=size.value,
            allowed=f"{has if its else 'none'}, or another --model",
        )


def _clashes(
    sizes: Sequence[Size], model: Architecture
) -> Iterator[tuple[Size, Sequence[int | str]]]:
    for size in sizes:
        its = {_made(value, size) for value in KNOWN[size.what](model)}
        if size.value not in its and (its or size.what not in OF_ONE_KIND):
            yield size, sorted(its, key=_order)


def _made(value: int | str, size: Size) -> int | str:
    """Value as the tool makes it, rounded up to its multiple."""
    return rounded(value, size.multiple) if isinstance(value, int) else value


def _order(value: int | str) -> tuple[int, str]:
    return (value, "") if isinstance(value, int) else (0, value)


def _shown(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value

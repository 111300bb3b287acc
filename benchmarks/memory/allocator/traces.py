"""Traces and settings that both allocators run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random

from planner.eager import EagerCase
from planner.eager.allocator.allocator import UNLIMITED, Settings
from planner.eager.allocator.blocks import MIB
from planner.eager.allocator.steps import events, steps_of
from planner.eager.case import LoraCase

EVENTS = 1200
"""Events of a drawn trace. [1]"""
REPORTS = 100
"""Events between two reports of the peaks. [1]"""
DRAWN = 45
"""Drawn traces. [1]"""
CAPACITY = 2**45
"""Room of a device without a limit. [B]"""
LENGTHS = {"equal": (2048,) * 3, "drawn": (700, 310, 1433, 95, 2048, 820, 1777, 1210)}
"""Lengths of the steps of a replayed trace. [tokens]"""
LAYERS = 4
"""Blocks of the replayed model. [1]"""
MODEL: dict[str, object] = {
    "family": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
    "intermediate_size": 5632,
}
METHODS: dict[str, dict[str, object]] = {
    "full": {"recompute": "none"},
    "recomputed": {"recompute": "full", "ga": 2},
    "lora": {"recompute": "full", "lora": LoraCase(r=16, dropout=0.05)},
    "qlora": {"recompute": "full", "lora": LoraCase(r=16, quant="nf4", fp32=True)},
    "autocast": {"precision": "amp_bf16", "opt_impl": "foreach"},
    "fsdp2": {"zero": 3, "world": 4},
}
"""Ways of training that are replayed."""


@dataclass(frozen=True)
class Replayed:
    """A way of training and the lengths of its steps."""

    method: str
    lengths: str


REPLAYED = [
    (Replayed(method, lengths), given)
    for method, lengths in product(METHODS, LENGTHS)
    for given in (Settings(), Settings(expandable=True))
]
"""Replayed traces, each under both kinds of segments."""


@dataclass(frozen=True)
class Event:
    """Storage taken, or freed where the size is 0."""

    number: int
    size: int
    stream: int = 0


def drawn(seed: int) -> Iterator[Event]:
    """Draw allocations of all pools and frees in no order.

    Args:
        seed: Number of the trace. [1]

    Yields:
        Events. [event]
    """
    dice, live, made = Random(seed), list[int](), 0  # noqa: S311  no secret
    top, streams = (20, 80, 300)[seed % 3], (1, 1, 3)[seed // 3 % 3]
    for _ in range(EVENTS):
        if live and dice.random() < (0.42 if len(live) < top else 0.6):
            yield Event(live.pop(int(dice.random() * len(live))), 0)
        else:
            made += 1
            live.append(made)
            yield Event(made, _size(dice), int(dice.random() * streams))


def _size(dice: Random) -> int:
    """Sizes of every pool, round and odd ones. [B]."""
    kind, part = int(dice.random() * 5), dice.random()
    most = (5000, 1.1 * MIB, 12 * MIB, 300 * MIB)
    if kind == len(most):
        return (4, 8, 33, 64, 100)[int(part * 5)] * MIB
    return 1 + int(part * most[kind])


def settings(seed: int) -> Settings:
    """Settings of a drawn trace: each kind with and without a full device.

    Args:
        seed: Number of the trace. [1]

    Returns:
        Settings. [settings]
    """
    capacity = (UNLIMITED, 4000 * MIB, 1500 * MIB)[seed // 5 % 3]
    few = min(capacity, 4000 * MIB)
    return (
        Settings(capacity=capacity),
        Settings(capacity=capacity, expandable=True),
        Settings(capacity=capacity, max_split=64 * MIB),
        Settings(capacity=few, limited=True, collect_at=0.5),
        Settings(capacity=few, limited=True, collect_at=0.8),
    )[seed % 5]


def words(given: Settings) -> str:
    """``PYTORCH_CUDA_ALLOC_CONF`` of settings.

    Args:
        given: Settings. [settings]

    Returns:
        The value. [text]
    """
    said = []
    if given.expandable:
        said.append("expandable_segments:True")
    if given.max_split < UNLIMITED:
        said.append(f"max_split_size_mb:{given.max_split // MIB}")
    if given.collect_at:
        said.append(f"garbage_collection_threshold:{given.collect_at}")
    return ",".join(said)


def reports(at: int) -> bool:
    """Tell if peaks are reported after an event.

    Args:
        at: Number of the event, from 1. [1]

    Returns:
        True at every hundredth event. [flag]
    """
    return at % REPORTS == 0


def key(case: Replayed, given: Settings) -> str:
    """Name of a replayed trace.

    Args:
        case: The trace. [trace]
        given: Settings. [settings]

    Returns:
        The name. [text]
    """
    return f"{case.method}, {case.lengths} lengths, {words(given) or 'default'}"


def replayed(case: Replayed) -> Iterator[Event]:
    """Follow the steps of a small model.

    Args:
        case: The trace. [trace]

    Yields:
        Events. [event]
    """
    fields = {"model": MODEL, "mbs": 1} | METHODS[case.method]
    steps = steps_of(EagerCase.model_validate(fields))
    for number, size in events(steps, LENGTHS[case.lengths]):
        yield Event(number, size)

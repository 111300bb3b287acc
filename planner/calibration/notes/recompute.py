"""Recomputation of every layer of a measured row."""

from collections.abc import Sequence
from itertools import accumulate, groupby

from planner.calibration.notes.rules import rules
from planner.calibration.rows.vocabulary import RecomputeWords
from planner.specs.layouts.layout import RecomputeRange, Stage
from planner.specs.layouts.recompute import RecomputeKind

MODULES_KIND = "selective-modules"
"""Name of the kind that recomputes a row's own list of modules. [text]"""


def module_kind(modules: Sequence[str]) -> RecomputeKind:
    """Recomputation of a list of modules: the union of what each drops and runs."""
    known = rules().recompute_modules.kinds
    chosen = [known[name] for name in modules if name in known]
    return RecomputeKind(
        name=MODULES_KIND,
        keeps={tensor: 0.0 for module in chosen for tensor in module.drops},
        keeps_others=1.0,
        gemms={gemm: 1.0 for module in chosen for gemm in module.gemms},
        core=max((module.core for module in chosen), default=0.0),
        memory_ops=min(sum(module.memory_ops for module in chosen), 1.0),
        collectives=max((module.collectives for module in chosen), default=0.0),
    )


def stages_of(
    counts: Sequence[int], words: RecomputeWords, pp: int
) -> tuple[Stage, ...]:
    """Virtual stages of given sizes with what each of their layers recomputes.

    A share of the model's layers is taken from every pipeline rank: the rank's first
    layers, which hold their activations longest.

    Args:
        counts: Layers per virtual stage, in model order. [1], shape (stages,)
        words: Recomputation in fixed words; `unknown` counts as none.
        pp: Pipeline ranks; stage i is on rank i modulo pp. [1]

    Returns:
        Stages in model order. shape (stages,)
    """
    starts = [0, *accumulate(counts)][: len(counts)]
    firsts = [_first_layers(counts, words, pp, at) for at in range(len(counts))]
    return tuple(
        Stage(layers=count, recompute=_ranges(_kinds(start, count, first, words)))
        for start, count, first in zip(starts, counts, firsts, strict=True)
    )


def _kinds(start: int, count: int, first: int, words: RecomputeWords) -> list[str]:
    """Kind of every layer of one virtual stage."""
    kind = MODULES_KIND if words.kind == "selective" and words.modules else words.kind
    if kind == "unknown":
        kind = "none"
    if words.every:
        again = [(start + layer) % words.every == 0 for layer in range(count)]
    else:
        again = [layer < first for layer in range(count)]
    return [kind if flag else "none" for flag in again]


def _first_layers(
    counts: Sequence[int], words: RecomputeWords, pp: int, at: int
) -> int:
    """Number of first layers of virtual stage `at` that are recomputed."""
    if words.layers_per_virtual_stage is not None:
        return min(words.layers_per_virtual_stage, counts[at])
    share = words.fraction
    if words.layers is not None:
        share = min(words.layers / sum(counts), 1.0)
    if share is None:
        return counts[at]
    before = sum(counts[at % pp : at : pp])
    wanted = round(share * sum(counts[at % pp :: pp]))
    return min(max(wanted - before, 0), counts[at])


def _ranges(kinds: Sequence[str]) -> tuple[RecomputeRange, ...]:
    """Neighbours of one kind as ranges."""
    runs = [(kind, len(list(run))) for kind, run in groupby(kinds)]
    ends = list(accumulate(length for _, length in runs))
    return tuple(
        RecomputeRange(start=end - length, stop=end, kind=kind)
        for (kind, length), end in zip(runs, ends, strict=True)
    )

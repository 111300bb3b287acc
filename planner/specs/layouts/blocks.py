"""Layouts that recompute the first layers of every virtual stage in full."""

from collections.abc import Sequence

from planner.specs.layouts.layout import RecomputeRange, Stage
from planner.specs.layouts.recompute import BLOCK_KINDS, block_of


def recomputed_block(stages: Sequence[Stage]) -> int:
    """Number of first layers that all virtual stages recompute in full, and no others.

    Returns:
        The N of a block, such as `full:2`; 0 where the stages are no block. [1]
    """
    firsts = [_leading(stage) for stage in stages]
    size = max(firsts, default=0)
    if size < 1:
        return 0
    alike = all(
        first == min(size, stage.layers)
        for first, stage in zip(firsts, stages, strict=True)
    )
    return size if alike and any(size < stage.layers for stage in stages) else 0


def _leading(stage: Stage) -> int:
    """First layers under full, where all others are under none; else -1."""
    first, rest = BLOCK_KINDS
    kinds = [p.kind for p in stage.recompute for _ in range(p.start, p.stop)]
    kinds = kinds or [rest] * stage.layers
    size = kinds.count(first)
    expected = [first] * size + [rest] * (len(kinds) - size)
    return size if kinds == expected else -1


def with_block(layers: int, size: int) -> Stage:
    """A virtual stage whose first layers are recomputed in full."""
    edge = min(size, layers)
    spans = zip(BLOCK_KINDS, (0, edge), (edge, layers), strict=True)
    return Stage(
        layers=layers,
        recompute=tuple(
            RecomputeRange(start=start, stop=stop, kind=kind)
            for kind, start, stop in spans
            if stop > start
        ),
    )


def with_recompute(stage: Stage, kind: str) -> Stage:
    """A virtual stage whose layers have a recompute kind.

    Args:
        stage: The stage. [-]
        kind: Kind of a stage that says none itself; a block, such as `full:2`, too.
            [text]
    """
    if stage.recompute or stage.layers == 0:
        return stage
    if block := block_of(kind):
        return with_block(stage.layers, block)
    whole = RecomputeRange(start=0, stop=stage.layers, kind=kind)
    return Stage(layers=stage.layers, recompute=(whole,))

"""Memory of a rank at the moments beside its schedule's backwards, added up again."""

from collections.abc import Iterator, Sequence

from planner.verify.prices import Price, Prices


def idle_peak(prices: Prices, chunks: Sequence[Sequence[Price]]) -> int:
    """The fullest of a rank's moments beside the schedule's backwards.

    Start-up, the last layers of the only backward, the embedding's backward, the
    optimizer step, the gather of updated parameters, a checkpoint and a resume.

    Args:
        prices: The plan. [-]
        chunks: What the rank holds, by chunk. [block]

    Returns:
        States and all that is there at the moment. [block]
    """
    units = [unit for chunk in chunks for unit in chunk]
    ends = [u for u in units if u is prices.embedding or u is prices.head]
    layers = [u for u in units if not any(u is end for end in ends)]
    static = sum(unit.static for unit in units)
    moments = [*_around(units), _embedding_backward(prices, units)]
    if any(unit.idle.late for unit in layers):
        moments += _one_backward(prices, units, layers)
    return static + max(moments)


def _around(units: Sequence[Price]) -> Iterator[int]:
    """Above the states: start-up, step, gather, checkpoint, resume. [block]."""
    idles = [unit.idle for unit in units]
    outside = -sum(idle.root for idle in idles)
    yield outside - sum(i.optimizer for i in idles) + max(i.quantised for i in idles)
    step = sum(idle.late + idle.copied for idle in idles)
    yield outside + step + max(idle.worked for idle in idles)
    yield outside + max(idle.gathered for idle in idles)
    saved = sum(idle.saved for idle in idles)
    yield outside + saved + max(idle.saved_whole for idle in idles)
    yield outside + sum(idle.loaded for idle in idles)


def _embedding_backward(prices: Prices, units: Sequence[Price]) -> int:
    """All gradients are there, and what makes the embedding's. [block]."""
    late = sum(unit.idle.late + unit.idle.made for unit in units)
    has_table = any(unit is prices.embedding for unit in units)
    return late + has_table * prices.embedding.saved


def _one_backward(
    prices: Prices, units: Sequence[Price], layers: Sequence[Price]
) -> Iterator[int]:
    """A rank's only backward: its first layer, its last, and any between. [block].

    Gradients take the place of activations; where some layers are larger by the
    one and some by the other, no order of them holds more than the larger of both.
    """
    head = sum(u.idle.late + u.idle.tied for u in units if u is prices.head)
    table = sum(u.saved for u in units if u is prices.embedding)
    saved = sum(layer.saved for layer in layers)
    late = sum(layer.idle.late for layer in layers)
    yield head + table + saved + max(layer.transient for layer in layers)
    last = max(layer.saved + layer.transient for layer in layers)
    yield head + table + late + last
    gains = {layer.idle.late > layer.saved for layer in layers if _changes(layer)}
    if len(gains) > 1:
        both = sum(max(layer.saved, layer.idle.late) for layer in layers)
        yield head + table + both + max(layer.transient for layer in layers)


def _changes(layer: Price) -> bool:
    return layer.idle.late != layer.saved

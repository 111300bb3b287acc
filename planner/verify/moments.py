"""Memory of a rank at the moments outside the schedule's backwards, added up again."""

from collections.abc import Callable, Sequence

from planner.specs.table import BLOCK
from planner.verify.idle import Idle
from planner.verify.price import Price, blocks
from planner.verify.prices import Prices

Units = Sequence[Price]


def idle_moments(prices: Prices, chunks: Sequence[Units]) -> dict[str, int]:
    """Memory of a rank at every moment outside the schedule's backwards.

    Args:
        prices: The plan. [-]
        chunks: Layers and ends of the rank, by chunk. [block]

    Returns:
        States and all other memory, by name of the moment. [block]
    """
    units = [unit for chunk in chunks for unit in chunk]
    layers = [u for u in units if u is not prices.embedding and u is not prices.head]
    static = sum(unit.static for unit in units)
    found = dict.fromkeys(("end of backward", "steady", "backward"), 0)
    if any(layer.idle.late for layer in layers):
        found |= _one_backward(prices, units, layers)
    last = max(found.pop("end of backward"), _embedding_backward(prices, units))
    above = found | {"end of backward": last} | _around(units)
    return {name: static + blocks for name, blocks in above.items()}


def _total(units: Units, of: Callable[[Price], float]) -> int:
    """Memory of all units, each rounded once. [block]."""
    return sum(blocks(of(unit)) for unit in units)


def _around(units: Units) -> dict[str, int]:
    """Memory above the states: start-up, step, gather, checkpoint, resume. [block]."""

    def moment(held: Callable[[Idle], float], alone: Callable[[Idle], float]) -> int:
        held_by_all = _total(units, lambda u: held(u.idle) - u.idle.root)
        return held_by_all + max(blocks(alone(unit.idle)) for unit in units)

    return {
        "start-up": moment(lambda i: -i.optimizer, lambda i: i.quantised),
        "optimizer step": moment(lambda i: i.late + i.copied, lambda i: i.worked),
        "parameter gather": moment(lambda _: 0.0, lambda i: i.gathered),
        "checkpoint save": moment(lambda i: i.saved, lambda i: i.saved_alone),
        "resume load": moment(lambda i: i.loaded, lambda _: 0.0),
    }


def _embedding_backward(prices: Prices, units: Units) -> int:
    """Memory above the states in the embedding's backward: all gradients. [block]."""

    def there(unit: Price) -> float:
        table = BLOCK * unit.saved if unit is prices.embedding else 0
        return unit.idle.late + unit.idle.made + table

    return _total(units, there)


def _one_backward(prices: Prices, units: Units, layers: Units) -> dict[str, int]:
    """Memory above the states in a rank's only backward. [block].

    The first layer, the last layer, and any layer between. Gradients take the place
    of activations. Where layers differ in which is larger, the larger counts for
    each layer: an upper bound for any order of layers.
    """
    heads = [unit for unit in units if unit is prices.head]
    ends = _total(heads, lambda u: u.idle.late + u.idle.tied)
    ends += sum(unit.saved for unit in units if unit is prices.embedding)
    beside = max(layer.transient for layer in layers)
    last = max(layer.saved + layer.transient for layer in layers)
    either = _total(layers, lambda u: max(u.idle.late, BLOCK * u.saved))
    return {
        "steady": ends + beside + sum(layer.saved for layer in layers),
        "end of backward": ends + last + _total(layers, lambda u: u.idle.late),
        "backward": ends + beside + either if _mixed(layers) else 0,
    }


def _mixed(layers: Units) -> bool:
    """Tell if gradients exceed activations in some layers, but not in others."""
    more = any(layer.idle.late > BLOCK * layer.saved for layer in layers)
    return more and any(layer.idle.late < BLOCK * layer.saved for layer in layers)

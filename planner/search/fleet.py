"""How many GPUs of a fleet a layout may use: which sizes a space holds.

A layout that leaves GPUs idle fills whole nodes, the first ones in service. Sizes
smaller than the fleet are in the space where the user limits ``gpus``, where nodes are
out of service or pods differ in size, in the full space of fleets that are not large,
and where no layout at all fills the fleet.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from planner.cost.workload import Workload

MOST_IDLE = 32
"""A layout uses all but one in so many of the GPUs that the fullest one uses. [1]"""
FULL_IDLES = 2048
"""GPUs of the largest fleet that the full space may leave idle in part unasked. [1]"""

Shape = tuple[int, int, int, int]
"""tp, pp, cp and dp. [1]"""


def divisors(n: int) -> list[int]:
    """Divisors in ascending order.

    Args:
        n: A positive whole number. [1]

    Returns:
        Its divisors. [1]
    """
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


@dataclass(frozen=True)
class Axis:
    """Whether a degree is legal where others are chosen; counts what it refuses."""

    tensor: Callable[[int], bool]
    context: Callable[[int, int], bool]
    pipeline: Callable[[int], bool]


def whole_shapes(workload: Workload, legal: Axis) -> Iterator[Shape]:
    """Degrees whose product is the fleet, innermost axes first.

    Args:
        workload: The job.
        legal: Which degrees the model, framework and user allow.

    Yields:
        Shapes; dp is what is left, whether the batch divides by it or not. [1]
    """
    gpus = workload.gpus
    for tp in divisors(gpus):
        for cp in divisors(gpus // tp) if legal.tensor(tp) else ():
            for pp in divisors(gpus // (tp * cp)) if legal.context(tp, cp) else ():
                if legal.pipeline(pp):
                    yield tp, pp, cp, gpus // (tp * pp * cp)


class SmallerFleets:
    """Shapes that may leave whole nodes idle.

    For each tp, pp and cp the most replicas that divide the batch and that the user
    allows, on whole nodes; of these the shapes that use at least 31 of 32 of the
    GPUs that the fullest one uses. Where the user limits ``gpus``, all sizes that the
    limit allows, with any number of replicas.
    """

    def __init__(self, workload: Workload, legal: Axis) -> None:
        self.workload, self.legal = workload, legal

    def shapes(self) -> Iterator[Shape]:
        """The declared shapes.

        Yields:
            tp, pp, cp, dp. [1]
        """
        every = list(self._every())
        used = [tp * pp * cp * dp for tp, pp, cp, dp in every]
        most = max(used, default=0)
        limited = self.workload.search.gpus is not None
        for shape, gpus in zip(every, used, strict=True):
            if limited or MOST_IDLE * (most - gpus) <= most:
                yield shape

    def _every(self) -> Iterator[Shape]:
        """All shapes on whole nodes, each with the replicas it may have."""
        legal, workload = self.legal, self.workload
        gpus, layers = workload.gpus, workload.model.layers
        heads = max(kind.attention.heads for kind in workload.kinds)
        for tp in _upto(divisors(heads), gpus):
            contexts = divisors(workload.training.seq_len) if legal.tensor(tp) else []
            for cp in _upto(contexts, gpus // tp):
                if not legal.context(tp, cp):
                    continue
                for pp in range(1, min(layers + 2, gpus // (tp * cp)) + 1):
                    if legal.pipeline(pp):
                        for dp in self._replicas(tp * pp * cp):
                            yield tp, pp, cp, dp

    def _replicas(self, each: int) -> list[int]:
        """Numbers of replicas of so many GPUs that the declared space has."""
        search = self.workload.search
        legal = [
            dp
            for dp in self._batch_divisors
            if each * dp <= self.workload.gpus
            and search.allows("gpus", each * dp)
            and search.allows("dp", dp)
            and fills_nodes(self.workload, each * dp)
        ]
        return legal if search.gpus is not None else legal[-1:]

    @cached_property
    def _batch_divisors(self) -> list[int]:
        return divisors(self.workload.sequences)


def _upto(values: list[int], most: int) -> list[int]:
    return [value for value in values if value <= most]


def fills_nodes(workload: Workload, gpus: int) -> bool:
    """Whether so many ranks are whole nodes, or nodes may be used in part.

    Args:
        workload: The job.
        gpus: Ranks of a layout. [1]

    Returns:
        True where the layout can be placed.
    """
    cluster = workload.topology.cluster
    return cluster.spec.partial or gpus % cluster.node.gpus_per_node == 0


def may_idle(workload: Workload) -> bool:
    """Whether the fleet as such is one that layouts need not fill.

    Args:
        workload: The job.

    Returns:
        True where the user limits gpus, nodes are out of service, or pods differ; in
        the full space of fleets that are not large, always.
    """
    spec, search = workload.topology.cluster.spec, workload.search
    uneven = any(tier.units for tier in spec.tiers)
    small = search.space == "full" and workload.gpus <= FULL_IDLES
    return search.gpus is not None or bool(spec.dead) or uneven or small

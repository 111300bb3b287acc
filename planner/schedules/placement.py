"""Ranks of the virtual stages, and transfers between the stages."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

V_SHAPED = ("zb-v", "dualpipe-v", "dualpipe")
"""Schedules whose second chunks lie on the ranks in reverse. [text]"""


@dataclass(frozen=True)
class Placement:
    """The virtual stages of a schedule on its ranks.

    Of chunk j on rank r, with p ranks::

        looped     stage = j p + r
        V-shaped   stage = r for chunk 0, 2 p - 1 - r for chunk 1

    Both ways (dualpipe), stages p to 2 p - 1 are the model a second time. They are
    the stages 0 to p - 1 of the other direction, from the last rank to the first.
    Half of the micro-batches pass them.
    """

    p: int
    v: int
    folded: bool
    both_ways: bool

    @cached_property
    def stages(self) -> int:
        """Virtual stages, copies counted, ``p v``. [1]."""
        return self.p * self.v

    @cached_property
    def depth(self) -> int:
        """Virtual stages that a micro-batch passes. [1]."""
        return self.p if self.both_ways else self.stages

    def stage(self, rank: int, chunk: int) -> int:
        """Virtual stage of a chunk of a rank. [1]."""
        if self.folded and chunk:
            return 2 * self.p - 1 - rank
        return chunk * self.p + rank

    def rank(self, stage: int) -> int:
        """Rank that holds a virtual stage. [1]."""
        if self.folded and stage >= self.p:
            return 2 * self.p - 1 - stage
        return stage % self.p

    def chunk(self, stage: int) -> int:
        """Chunk that a virtual stage is on its rank. [1]."""
        return stage // self.p

    def of_rank(self, rank: int) -> tuple[int, ...]:
        """Virtual stages of a rank, by chunk. [1], shape (v,)."""
        return self._of_ranks[rank]

    @cached_property
    def _of_ranks(self) -> tuple[tuple[int, ...], ...]:
        chunks = range(self.v)
        return tuple(
            tuple(self.stage(rank, chunk) for chunk in chunks) for rank in range(self.p)
        )

    def is_first(self, stage: int) -> bool:
        """Say if micro-batches enter here. [bool]."""
        return stage % self.depth == 0

    def is_last(self, stage: int) -> bool:
        """Say if the loss is here. [bool]."""
        return (stage + 1) % self.depth == 0

    def hops(self, stage: int) -> int:
        """Transfers from the virtual stage before: 0 on the same rank. [1]."""
        return self._hops[stage]

    @cached_property
    def _hops(self) -> tuple[int, ...]:
        return tuple(
            int(not self.is_first(stage) and self.rank(stage - 1) != self.rank(stage))
            for stage in range(self.stages)
        )

    def micros(self, m: int) -> int:
        """Micro-batches of a step that pass one virtual stage. [1]."""
        return m // 2 if self.both_ways else m


@lru_cache(maxsize=1024)
def placement(schedule: str, p: int, v: int) -> Placement:
    """Place chunks in loops over the ranks, or in a V there and back.

    In a V the first and the last virtual stage are both on rank 0. The two stages at
    the turn are both on rank p - 1, where no transfer is needed.

    Args:
        schedule: One of ``SCHEDULES``. [text]

    References:
        P. Qi et al., "Pipeline Parallelism with Controllable Memory",
        arXiv:2405.15362. PyTorch 2.13, ``torch/distributed/pipelining``
        (``generate_stage_to_rank_mapping``).
    """
    return Placement(p, v, schedule in V_SHAPED, schedule == "dualpipe")

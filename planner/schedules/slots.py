"""Index of every duration of a step in one vector."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Slots:
    """Indices of the durations in the vector of durations x.

    The ``S = p v`` virtual stages are in model order (dualpipe: those of one
    direction, then those of the other). Then x is the concatenation of
    F, B, W, GATHER, SCATTER, FIRST, LAST (S entries each), OPT (p entries) and
    one zero, in ns. Every method takes a virtual stage, ``opt`` a rank.
    """

    p: int
    v: int

    @property
    def stages(self) -> int:
        """Virtual stages, ``S = p v``. [1]."""
        return self.p * self.v

    @property
    def n_slots(self) -> int:
        """Length of x, ``7 S + p + 1``. [1]."""
        return 7 * self.stages + self.p + 1

    @property
    def zero(self) -> int:
        """Index of the entry that is always 0. [1]."""
        return 7 * self.stages + self.p

    def f(self, stage: int) -> int:
        """Index of the forward of one micro-batch. [1]."""
        return stage

    def b(self, stage: int) -> int:
        """Index of the backward of one micro-batch; without W if W exists. [1]."""
        return self.stages + stage

    def w(self, stage: int) -> int:
        """Index of the weight gradient of one micro-batch; 0 if in B. [1]."""
        return 2 * self.stages + stage

    def gather(self, stage: int) -> int:
        """Index of the all-gather of the stage's parameters. [1]."""
        return 3 * self.stages + stage

    def scatter(self, stage: int) -> int:
        """Index of the reduce-scatter of the stage's gradients. [1]."""
        return 4 * self.stages + stage

    def first(self, stage: int) -> int:
        """Index of the part of GATHER that the first forward waits for. [1]."""
        return 5 * self.stages + stage

    def last(self, stage: int) -> int:
        """Index of the part of SCATTER that the backward must end before. [1]."""
        return 6 * self.stages + stage

    def opt(self, rank: int) -> int:
        """Index of the optimizer step of a rank. [1]."""
        return 7 * self.stages + rank

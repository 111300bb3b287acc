"""Splits whose step and memory are worked out by hand, each with its sum."""

from dataclasses import dataclass, replace

import numpy as np
from strategies import small_problem

from planner.cost.pipeline.memory_rows import rank_blocks
from planner.cost.pipeline.splits import step_ns
from planner.specs.table import EndCosts, IdleMoment, LayerCosts, StageCosts


@dataclass(frozen=True)
class Worked:
    """A split with what its step takes [ns] and its ranks hold [block]."""

    costs: StageCosts
    split: tuple[tuple[int, ...], ...]
    """Layers of every stage by entry of the menu. [1]"""
    step: int
    blocks: tuple[int, ...]

    def holds(self) -> bool:
        """Whether the simulator and the count of memory say the same."""
        counts = np.array(self.split, dtype=np.int64)[:, None, :]
        step = step_ns(self.costs, counts)
        blocks = tuple(rank_blocks(self.costs, counts).tolist())
        return (step, blocks) == (self.step, self.blocks)


PLAIN = small_problem().layers[0]
"""10 ns forward, 20 backward, 7 blocks of states, 5 in flight, 1 beside."""
TWO = LayerCosts((10, 10), (20, 30), (5, 1), (1, 4), 7, 0, 0, 0, 0)
HEAD = EndCosts(forward=4, backward=6, saved=2, transient=9, static=11)
LATE = IdleMoment("step", ((15,),), ((1,),), embedding=30, embedding_beside=2)
FOUR = {"runs": ((0, 4),)}


def with_layer(**fields: int) -> StageCosts:
    """Three layers on two ranks, of which each has a cost more."""
    return small_problem(layers=(replace(PLAIN, **fields),))


WORKED = {
    # rank 0: F 0-20-40, B 50-90-130; rank 1: F 20-30, B 30-50, F 50-60, B 60-80
    # rank 0: 2 (7 + 2 * 5) + 1; rank 1: 7 + 5 + 1
    "1f1b": Worked(small_problem(), ((2,), (1,)), 130, (35, 13)),
    # rank 0: F 0-10-20, B 70-90, 130-150; rank 1: F 10-30, B 30-70, F 70-90, B 90-130
    "1f1b, heavy end": Worked(small_problem(), ((1,), (2,)), 150, (18, 25)),
    # rank 1: F 20-30, 40-50, B 50-70-90; rank 0: B 70-110-150; all in flight
    "gpipe": Worked(small_problem(schedule="gpipe"), ((2,), (1,)), 150, (35, 18)),
    # rank 1: F 23-33, B 33-53, F 53-63, B 63-83; rank 0: B 56-96-136
    "transfers": Worked(small_problem(p2p=3), ((2,), (1,)), 136, (35, 13)),
    # rank 1: F 20-34, B 34-60, F 60-74, B 74-100; rank 0: B 60-100-140
    # rank 1: 7 + 11 + 5 + 2 + max(1, 9)
    "head": Worked(small_problem(head=HEAD), ((2,), (1,)), 140, (35, 34)),
    # rank 0: F 0-24-48, B 54-100-146; 14 + 11 + 2 (10 + 2) + max(1, 9)
    "embedding": Worked(small_problem(embedding=HEAD), ((2,), (1,)), 146, (58, 13)),
    # 130, then 2 * 5 of rank 0
    "optimizer": Worked(with_layer(optimizer=5), ((2,), (1,)), 140, (35, 13)),
    # 130, then 7 on the host
    "host": Worked(small_problem(overhead=7), ((2,), (1,)), 137, (35, 13)),
    # rank 0 starts after 2 * 8
    "gather before": Worked(with_layer(gather=8), ((2,), (1,)), 146, (35, 13)),
    # rank 0: F 0-20, known at 30; F 30-50; rank 1: F 30-40, B 40-60, F 60-70, B 70-90
    # rank 0: B 60-100-140
    "gather beside": Worked(
        replace(with_layer(gather=15), overlap_gather=True), ((2,), (1,)), 140, (35, 13)
    ),
    # after 130 of rank 0 once 2 * 6, or after both micro-batches
    "scatter once": Worked(with_layer(scatter=6), ((2,), (1,)), 142, (35, 13)),
    "scatter twice": Worked(
        replace(with_layer(scatter=6), scatter_every=1), ((2,), (1,)), 154, (35, 13)
    ),
    # beside B 90-130 of rank 0: from 90 on 2 * 30, to 150
    "scatter beside": Worked(
        replace(with_layer(scatter=30), overlap_scatter=True),
        ((2,), (1,)),
        150,
        (35, 13),
    ),
    # rank 0: F 0-10-20, F' 20-30-40, B' 60-80, 90-110, B 110-130-150
    # rank 1: F 10-20-30, F' 30-40, B' 40-60, F' 60-70, B' 70-90, B 90-110-130
    # rank 0: 14 + 4 * 5 + 1; rank 1: 14 + 3 * 5 + 1
    "interleaved": Worked(
        small_problem(schedule="interleaved", vpp=2, **FOUR),
        ((1,), (1,), (1,), (1,)),
        150,
        (35, 30),
    ),
    # rank 0 never waits: 4 (60 + 30); it holds 4 of the first chunk and 1 of the
    # second, or 3 and 2: 21 + max(4 * 10 + 5, 3 * 10 + 2 * 5) + 1; rank 1 as above
    "interleaved, heavy first chunk": Worked(
        small_problem(
            schedule="interleaved",
            vpp=2,
            micro_batches=4,
            scatter_every=4,
            runs=((0, 5),),
        ),
        ((2,), (1,), (1,), (1,)),
        360,
        (67, 30),
    ),
    # rank 0: F 0-20-40, B 50-100-150; 14 + 2 (5 + 1) + max(1, 4)
    "menu": Worked(
        small_problem(menu=("none", "full"), layers=(TWO,)),
        ((1, 1), (1, 0)),
        150,
        (30, 13),
    ),
    # 35 + 2 * 3; 13 + 3
    "waiting gradients": Worked(with_layer(accumulated=3), ((2,), (1,)), 130, (41, 16)),
    # rank 0: 14 + 2 * 15 + 30 + max(1, 2); rank 1: 7 + 15 + 1
    "idle": Worked(small_problem(idle=(LATE,)), ((2,), (1,)), 130, (76, 23)),
}

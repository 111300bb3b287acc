"""Memory of eager PyTorch, byte by byte, without PyTorch.

``replay`` runs one training iteration of a Hugging Face model and follows every
allocation. The tensors have shapes, types and storages but no numbers. ``replay`` is
the counterpart of ``torch.cuda.max_memory_allocated``.
"""

from planner.eager.case import EagerCase, LoraCase, Peak, Replay, Unsupported
from planner.eager.iteration import Iteration
from planner.eager.parts import BlockMemory, EndsMemory, block_memory, ends_memory
from planner.eager.sharding.groups import GroupMemory, GroupsMemory, groups_memory
from planner.eager.sharding.parallel import ParallelIteration, parallel

__all__ = [
    "BlockMemory",
    "EagerCase",
    "EndsMemory",
    "GroupMemory",
    "GroupsMemory",
    "LoraCase",
    "Peak",
    "Replay",
    "Unsupported",
    "block_memory",
    "ends_memory",
    "groups_memory",
    "replay",
]


def replay(case: EagerCase, *, tracked: bool = True) -> Replay:
    """Replay one training iteration.

    Args:
        case: The model and the way of training. [case]
        tracked: True to replay as under PyTorch's memory trackers, False as on a GPU.
            On a GPU, SiLU's backward is one kernel and flash attention's scratch is
            counted. Gradients are summed in place where the engine alone holds them.
            [flag]

    Returns:
        Peaks by phase and category. [replay]
    """
    kind = ParallelIteration if parallel(case) else Iteration
    return kind(case, tracked=tracked).run()

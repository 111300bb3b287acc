"""Orders of two chunks a rank that lie in a V: ZB-V, DualPipeV and DualPipe."""

from collections import Counter, deque

from planner.schedules.operation import Kind, Op

Steps = tuple[tuple[Kind, int], ...]
"""Kinds and chunks of operations, in order."""

_COUNTED: dict[Kind, Kind] = {"P": "F", "H": "B"}


class _Line:
    """A rank's operations so far; each takes the next micro-batch of its chunk."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.next: Counter[tuple[Kind, int]] = Counter()
        self.waiting: deque[int] = deque()

    def add(self, kind: Kind, chunk: int) -> None:
        """Add an operation; B and H share a count, F and P share another."""
        counted = _COUNTED.get(kind, kind)
        self.ops.append(Op(kind, self.next[counted, chunk], chunk))
        self.next[counted, chunk] += 1

    def backward(self, chunk: int, *, split: bool) -> None:
        """Add a backward: of the inputs, its W later, or the whole at once."""
        if split:
            self.add("B", chunk)
            self.waiting.append(chunk)
        else:
            self.add("H", chunk)
            self.add("W", chunk)

    def weight(self) -> None:
        """Add the W that has waited longest, if any does."""
        if self.waiting:
            self.add("W", self.waiting.popleft())


def zb_v(p: int, m: int, rank: int) -> tuple[Op, ...]:
    """Order of a rank in ZB-V: at most 2 p chunks, never idle where F = B = W.

    ``2 (p - r) - 1`` forwards of chunk 0, then r pairs of both chunks, then
    ``p - r`` times F B W of chunk 1; in steady state F B W of either chunk in
    turn; at the end r pairs of B whose W fill what follows. Fewer than
    ``2 p - 1`` micro-batches run the order of that many, less the missing.

    References:
        P. Qi et al., arXiv:2405.15362. PyTorch 2.13,
        ``ScheduleZBVZeroBubble``.
    """
    line, most = _Line(), max(m, 2 * p - 1)
    for kind, chunk in _zb_v_start(p, rank):
        line.add(kind, chunk)
    while line.next["F", 1] < most:
        if line.next["F", 0] < most:
            line.add("F", 0)
        for kind, chunk in _PAIR:
            line.add(kind, chunk)
    for kind, chunk in _zb_v_end(p, rank):
        line.add(kind, chunk)
    for chunk in (1, 0):
        while line.next["W", chunk] < most:
            line.add("W", chunk)
    return tuple(op for op in line.ops if op.micro < m)


_FULL: Steps = (("F", 1), ("B", 1), ("W", 1))
_PAIR: Steps = (("B", 0), ("W", 0), *_FULL)


def _zb_v_start(p: int, rank: int) -> Steps:
    """Fill the pipeline: what a rank does before its steady state."""
    first: Steps = (("F", 0),)
    both: Steps = (("F", 1), ("F", 0))
    return first * (2 * (p - rank) - 1) + both * rank + _FULL * (p - rank)


def _zb_v_end(p: int, rank: int) -> Steps:
    """Drain the pipeline, up to the W that are left over."""
    both: Steps = (("B", 0), ("B", 1))
    backward: Steps = (("B", 0), ("W", 0))
    return both * rank + backward * (p - rank)


def dualpipe_v(p: int, m: int, rank: int) -> tuple[Op, ...]:
    """Order of a rank in DualPipeV.

    Forwards of one chunk alternate with whole backwards of the other. In eight steps,
    with ``k = p - 1 - r``, chunks as digits, a whole backward is HW and one that runs
    with a forward is PHW::

        F0                 2 k times
        F0 F1              r + 1
        B1 W1 F1           k
        P0HW1 P1HW0        m - 2 p + r + 1; rank p - 1 first F0 HW1 P1HW0
        HW1 P1HW0          k
        HW1 HW0            r + 1, from its middle on as B1 B0
        W B0               k
        W                  r + 1

    A W without a chunk is the one that has waited longest.

    Leaves out what a pair gains by hiding the communication of one half behind the
    other. A pair lasts as long as F, B and W.

    References:
        DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv:2412.19437, and
        github.com/deepseek-ai/DualPipe. PyTorch 2.13, ``ScheduleDualPipeV``.
    """
    line, rest = _Line(), p - 1 - rank
    _dualpipe_start(line, rest, rank)
    for index in range(m - 2 * p + rank + 1):
        line.add("F" if index == rest == 0 else "P", 0)
        _half_pair(line)
    for _ in range(rest):
        _half_pair(line)
    _dualpipe_end(line, rest, rank)
    return tuple(line.ops)


def _half_pair(line: _Line) -> None:
    """Add HW1 P1HW0."""
    line.backward(1, split=False)
    line.add("P", 1)
    line.backward(0, split=False)


def _dualpipe_start(line: _Line, rest: int, rank: int) -> None:
    """Add steps 1 to 3, which fill the pipeline."""
    for _ in range(2 * rest):
        line.add("F", 0)
    for _ in range(rank + 1):
        line.add("F", 0)
        line.add("F", 1)
    for _ in range(rest):
        line.backward(1, split=True)
        line.weight()
        line.add("F", 1)


def _dualpipe_end(line: _Line, rest: int, rank: int) -> None:
    """Add steps 6 to 8, which drain the pipeline.

    Of the 2 (r + 1) backwards of step 6, the last r + 1 are split.
    """
    for index in range(2 * (rank + 1)):
        line.backward(1 - index % 2, split=index > rank)
    for _ in range(rest):
        line.weight()
        line.backward(0, split=True)
    for _ in range(rank + 1):
        line.weight()


def dualpipe(p: int, m: int, rank: int) -> tuple[Op, ...]:
    """Order of a rank in DualPipe: DualPipeV of p / 2 ranks, unfolded.

    Two pipelines run in opposite directions. Ranks r and p - 1 - r run DualPipeV's
    order of rank min(r, p - 1 - r), on half of the ranks and micro-batches. A rank of
    the second half has its chunks swapped. Chunk 0 is the direction from rank 0, chunk
    1 the direction from rank p - 1.

    Returns:
        Operations in order; micro-batches count from 0 in each direction. [1]

    Leaves out what ``dualpipe_v`` does.

    References:
        DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv:2412.19437, section
        3.2.1, and github.com/deepseek-ai/DualPipe.
    """
    swap = int(rank >= p // 2)
    order = dualpipe_v(p // 2, m // 2, min(rank, p - 1 - rank))
    return tuple(op._replace(chunk=op.chunk ^ swap) for op in order)

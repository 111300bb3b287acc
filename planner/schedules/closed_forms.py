"""Makespans and bounds on paper, with their limits; the simulator is exact.

Here f, b and w are the times of *all* chunks of a rank for one micro-batch. So
``t = f + b + w`` is the time of a rank for one micro-batch, whatever v is.
"""

from collections.abc import Sequence

from planner.hardware.reading.quantities import Seconds
from planner.schedules.order import SPLIT, operations


def uniform_makespan(
    schedule: str, p: int, v: int, m: int, f: Seconds, b: Seconds, w: float = 0.0
) -> float:
    """Makespan of equal stages, whose bubble does not depend on m. [s].

    With ``t = f + b + w``::

        gpipe, 1f1b   m t + (p - 1) t
        interleaved   m t + (p - 1) t / v
        zb-h1         m t + (p - 1) (f + b - w)
        zb-v          m t + (p - 1) max(b / 2, b - w)
        dualpipe-v    m t + (p - 1) (f + 2 b - w) / 2
        dualpipe      m t + (p / 2 - 1) (f + 2 b - w)

    The bubble of dualpipe is the authors' ``(p / 2 - 1) (F&B + B - 3 W)``. Here B is a
    whole backward, b + w, and F&B a pair that lasts f + b + w. A micro-batch of
    dualpipe passes one chunk of a rank: there f, b and w are times of one chunk.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        b: Backward, of the inputs only where it is split. [s]
        w: Weight gradient where the backward is split, else 0. [s]

    Raises:
        ValueError: The schedule does not exist for these numbers, or is outside
            the range where its form is exact (or p = 1): zb-h1 ``m >= p`` and w
            at most f and b; zb-v ``m >= 2 p - 1`` and ``w <= f <= b``;
            dualpipe-v and dualpipe ``w <= f = b``.

    Leaves out p2p (see ``p2p_delay``), data-parallel communication, optimizer.

    References:
        D. Narayanan et al., arXiv:2104.04473, section 2.2; P. Qi et al.,
        "Zero Bubble Pipeline Parallelism", arXiv:2401.10241; P. Qi et al.,
        arXiv:2405.15362; DeepSeek-AI, arXiv:2412.19437, table 2 of
        github.com/deepseek-ai/DualPipe. The form of zb-v beyond f = b = w was
        read off the simulator.
    """
    operations(schedule, p, v, m)
    if schedule not in SPLIT:
        return m * (f + b + w) + (p - 1) * (f + b + w) / v
    needs, exact, bubble = _split_bubble(schedule, p, m, f, b, w)
    if p > 1 and not exact:
        raise ValueError(
            f"the closed form of {schedule} needs {needs}; "
            f"given p={p}, m={m}, f={f}, b={b}, w={w}: simulate instead"
        )
    return m * (f + b + w) + bubble


def _split_bubble(
    schedule: str, p: int, m: int, f: float, b: float, w: float
) -> tuple[str, bool, float]:
    """Range of a closed form in words, True inside the range, and the bubble. [s]."""
    if schedule == "zb-h1":
        exact = m >= p and w <= min(f, b)
        return "m >= p and w <= min(f, b)", exact, (p - 1) * (f + b - w)
    if schedule == "zb-v":
        exact = m >= 2 * p - 1 and w <= f <= b
        return "m >= 2 p - 1 and w <= f <= b", exact, (p - 1) * max(b / 2, b - w)
    half = p / 2 - 1 if schedule == "dualpipe" else (p - 1) / 2
    return "w <= f = b", w <= f == b, half * (f + 2 * b - w)


def bubble_ratio(
    schedule: str, p: int, v: int, m: int, f: Seconds, b: Seconds, w: float = 0.0
) -> float:
    """Bubble over the ideal time: ``makespan / (m t) - 1``.

    ``(p - 1) / (v m)`` where the backward is not split. At ``f = b = w`` the ratio of
    zb-h1 is a third of the ratio of 1f1b, and the ratio of zb-v a sixth.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        b: Backward, of the inputs only where it is split. [s]
        w: Weight gradient where the backward is split, else 0. [s]

    Raises:
        ValueError: The schedule does not exist for these numbers, or is outside
            the limits of ``uniform_makespan``.
    """
    return uniform_makespan(schedule, p, v, m, f, b, w) / (m * (f + b + w)) - 1


def bubble_fraction(
    schedule: str, p: int, v: int, m: int, f: Seconds, b: Seconds, w: float = 0.0
) -> float:
    """Bubble over the whole time: ``1 - m t / makespan``.

    ``(p - 1) / (v m + p - 1)`` where the backward is not split.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        b: Backward, of the inputs only where it is split. [s]
        w: Weight gradient where the backward is split, else 0. [s]

    Raises:
        ValueError: The schedule does not exist for these numbers, or is outside
            the limits of ``uniform_makespan``.
    """
    return 1 - m * (f + b + w) / uniform_makespan(schedule, p, v, m, f, b, w)


def p2p_delay(schedule: str, p: int, v: int, m: int, p2p: Seconds) -> Seconds:
    """Time that transfers add: in steady state of 1f1b, elsewhere once per step.

    With ``q, r = divmod(m - 1, p)``, which makes the second row
    ``2 p2p (m (p - 1) / p + p - 2)`` where p divides m::

        gpipe         2 p2p (p - 1)
        1f1b          2 p2p ((p - 1) (q + 1) + max(0, r - 1))
        interleaved   2 p2p (p v - 1)

    Args:
        schedule: ``gpipe``, ``1f1b`` or ``interleaved``. [text]

    Returns:
        Time that transfers add to ``uniform_makespan``. [s]

    Raises:
        ValueError: The schedule does not exist for these numbers, or it splits
            the backward, for which there is no form here.

    Leaves out unequal stages. Leaves out transfers longer than the slack of a chunk
    (exact to at least a tenth of its forward). Transfers do not block the compute
    stream.
    """
    operations(schedule, p, v, m)
    if schedule in SPLIT:
        raise ValueError(f"{schedule} has no closed form of its p2p delay: simulate")
    if schedule == "gpipe" or v > 1:
        return 2 * p2p * (p * v - 1)
    full, rest = divmod(m - 1, p)
    return 2 * p2p * ((p - 1) * (full + 1) + max(0, rest - 1))


def lower_bound_1f1b(
    f: Sequence[float], b: Sequence[float], p2p: Seconds, m: int
) -> float:
    """Lower bound of a 1f1b step of unequal stages; the mean gap is at most 1 %.

    With ``t = f + b``, ``k = p - 1 - r`` and ``k' = min(k, m - 1)``::

        max_r [ sum_{j<r} t_j + 2 p2p r + m t_r + I_r ]
        R_r = sum_{j>r} t_j + 2 p2p k
        A = max(0, R_r - k' f_r)       the gap before the first backward
        B = max(0, R_r - k' b_r)       the gap before the last backward
        I_r = A + B if m > k + 1 else max(A, B)

    For ``m <= k + 1`` the two gaps are one gap. The bound is piecewise linear and
    convex in (f, b), so usable as rows of a linear model.

    Args:
        f: Forward of one micro-batch, by stage. [s], shape (p,)
        b: Backward of one micro-batch, by stage. [s], shape (p,)

    Returns:
        Lower bound of forwards, backwards and p2p. [s]

    Leaves out data-parallel communication and the optimizer.
    """
    bounds = []
    for r in range(len(f)):
        k = len(f) - 1 - r
        rest = sum(f[r + 1 :]) + sum(b[r + 1 :]) + 2 * p2p * k
        hidden = min(k, m - 1)
        gaps = max(0, rest - hidden * f[r]), max(0, rest - hidden * b[r])
        waits = sum(gaps) if m > k + 1 else max(gaps)
        before = sum(f[:r]) + sum(b[:r]) + 2 * p2p * r
        bounds.append(before + m * (f[r] + b[r]) + waits)
    return max(bounds)


def upper_bound_1f1b(
    f: Sequence[float], b: Sequence[float], p2p: Seconds, m: int
) -> float:
    """Upper bound of a 1f1b step of unequal stages; the mean gap is 2.6 %.

    ``sum_j t_j + (m - 1) max_j t_j`` with ``t = f + b``. To t every stage adds its
    sends as if they blocked it. A stage has two sends, the first and the last stage
    have one.

    Args:
        f: Forward of one micro-batch, by stage. [s], shape (p,)
        b: Backward of one micro-batch, by stage. [s], shape (p,)

    Returns:
        Upper bound of forwards, backwards and p2p. [s]

    Leaves out data-parallel communication and the optimizer. The gap holds
    without p2p; with p2p the bound is looser.
    """
    end = len(f) - 1
    times = [
        forward + backward + p2p * (2 - [0, end].count(j))
        for j, (forward, backward) in enumerate(zip(f, b, strict=True))
    ]
    return sum(times) + (m - 1) * max(times)


def interleaved_lower_bound(
    f: Sequence[Sequence[float]], b: Sequence[Sequence[float]], p2p: Seconds, m: int
) -> float:
    """Lower bound of an interleaved step of unequal stages.

    ``max_r [ sum_{q<r} (f_{q,0} + b_{q,0} + 2 p2p) + m sum_j t_{r,j} ]``: before and
    after its own work a rank waits for the first chunks above it. This is the length
    of one path per rank. It holds for any order in which a rank starts and ends with
    its chunk 0. The mean gap is 1.3 %, the largest seen 15 %.

    Args:
        f: Forward of one micro-batch, by rank and chunk. [s], shape (p, v)
        b: Backward of one micro-batch, by rank and chunk. [s], shape (p, v)

    Returns:
        Lower bound of forwards, backwards and p2p. [s]

    Leaves out data-parallel communication and the optimizer. The intuitive
    ``m max_r t_r + (p - 1) max t_{r,j}`` is no upper bound: use the simulator.
    """
    before: float = 0
    bounds = []
    for forwards, backwards in zip(f, b, strict=True):
        bounds.append(before + m * (sum(forwards) + sum(backwards)))
        before += forwards[0] + backwards[0] + 2 * p2p
    return max(bounds)

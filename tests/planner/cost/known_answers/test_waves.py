"""Waves of blocks, counted."""

import numpy as np
from each import each

from planner.cost.waves import BLOCK_OUTPUTS, Waves, idle_outputs


def idle(rows: float, outputs: float) -> float:
    return float(idle_outputs(np.array([rows]), np.array([outputs]), 108)[0])


@each(
    ("rows", "outputs", "wanted"),
    [
        # 9 * 12 = 108 blocks of 256 x 128 are one wave.
        (9 * 256.0, 12 * 128.0, 0.0),
        # 9 * 24 are two.
        (9 * 256.0, 24 * 128.0, 0.0),
        # One row more: two waves of large blocks, or of 19 * 12 = 228 of 128 x 128
        # three that last as long as four; 107 blocks are idle.
        (9 * 256.0 + 1, 12 * 128.0, 108 * 256 * 128 - 12 * 128.0),
        # One small block: a wave of 128 x 64 at 0.62 is the shortest.
        (64.0, 128.0, 108 * 128 * 64 / 0.62 - 64 * 128),
    ],
)
def test_the_last_wave_lasts_as_long_as_a_whole_one(
    rows: float, outputs: float, wanted: float
) -> None:
    assert np.isclose(idle(rows, outputs), wanted, atol=1e-6)


def test_two_thousand_rows_lose_more_than_four_thousand() -> None:
    """One sequence of 2048 on 8 tensor ranks, 14400 wide: 3.1, 8.4 and 4.2 waves."""
    outputs = (5400.0, 14400.0, 7200.0)
    one, two = (
        sum(idle(rows, n) / (rows * n) for n in outputs) for rows in (2048.0, 4096.0)
    )
    assert two < 0.6 * one


def test_deep_products_are_split_along_their_inputs() -> None:
    one, ends = np.array([4096.0]), Waves(108, depth=2000.0)
    shallow, deep = (ends.lost(one, one, np.array([k]))[0] for k in (2000.0, 6000.0))
    assert np.isclose(shallow, idle(4096.0, 4096.0) / 2)
    assert np.isclose(deep, shallow / 2)


def test_elsewhere_every_shape_loses_the_tail() -> None:
    one = np.ones(1)
    assert Waves(132, tail=0.5).lost(one, one, one) == 0.5 * 132 * BLOCK_OUTPUTS

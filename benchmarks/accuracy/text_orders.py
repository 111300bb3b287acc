"""Error that the order of a run's texts alone makes: ``python -m ...text_orders``.

A run whose texts differ in length reserves what the order asks for in which they come,
and nobody publishes it. Each row is priced with one order at a time. Runs of one
campaign, one tokenizer, one length and one batch share an order. One of the orders is
then taken as the run's and the mean of the others as the prediction.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from unittest import mock
from zlib import crc32

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from planner.cost.memory import cached_bytes
from planner.evidence.accuracy.price import described, price_case
from planner.evidence.mapping.cases import case_of
from planner.evidence.rows.rows import Row, read_rows
from planner.evidence.rows.unsupported import UnsupportedError

HERE = Path(__file__).parent
PAGE = HERE / "text_orders.md"
ORDERS = 12
"""Orders that each row is priced with. [1]"""
DRAWS = 4000
"""Campaigns that are drawn from them. [1]"""
Floats = npt.NDArray[np.float64]
Peaks = tuple[str, Floats, float]
"""Order that a row shares, its memory in every order [GiB], its error [1]."""


def _peaks(row: Row) -> Peaks | None:
    """Memory of a row in each order, none where it is not priced or not counted."""
    try:
        case = case_of(row)
    except UnsupportedError:
        return None
    error = price_case(case).memory_error
    if error is None or not described(case).counted or row.software is None:
        return None
    tokenizer = row.model.name.split("-")[0]
    shared = f"{tokenizer} {row.job.seq_len} {row.layout.micro_batch}"
    first = crc32(shared.encode())
    peaks = [_in_one_order(row, first + i) for i in range(ORDERS)]
    return shared, np.array(peaks), error


def _in_one_order(row: Row, seed: int) -> float:
    """Memory of a row whose texts come in one order, over the measured. [1]."""
    one = mock.patch.multiple(cached_bytes, SEED=seed, ORDERS=1)
    with one:
        error = price_case(case_of(row)).memory_error
    assert error is not None
    return 1 + error


def campaigns(rows: Sequence[Peaks], random: np.random.Generator) -> Floats:
    """Median and 90th percentile of a source's errors in campaigns that are drawn.

    Args:
        rows: Memory of the rows in every order. [-]
        random: Source of the draws. [-]

    Returns:
        Both figures of every campaign. [1], shape (campaigns, 2)
    """
    groups = sorted({shared for shared, _, _ in rows})
    found = np.empty((DRAWS, 2))
    for draw in found:
        at = dict(zip(groups, random.integers(ORDERS, size=len(groups)), strict=True))
        errors = [_error(peaks, int(at[shared])) for shared, peaks, _ in rows]
        draw[:] = np.quantile(errors, (0.5, 0.9))
    return found


def _error(peaks: Floats, at: int) -> float:
    """Error of the mean of all orders but one, taken as the run's. [1]."""
    return float(abs(np.delete(peaks, at).mean() / peaks[at] - 1))


def page(rows: Sequence[Peaks]) -> str:
    """The error that orders alone make, beside the error of the planner.

    Args:
        rows: Memory of the rows in every order. [-]

    Returns:
        Markdown. [text]
    """
    drawn = np.quantile(campaigns(rows, np.random.default_rng(0)), (0.05, 0.5, 0.95), 0)
    ours = np.quantile([abs(error) for _, _, error in rows], (0.5, 0.9))
    spread = [peaks.std() / peaks.mean() for _, peaks, _ in rows]
    groups = len({shared for shared, _, _ in rows})
    lines = [
        "# What the order of texts alone makes",
        "",
        "    python -m benchmarks.accuracy.text_orders",
        "",
        f"Memory errors of {len(rows)} rows of ms-swift, which have {groups} orders",
        f"of texts, each drawn {ORDERS} times: of a model of the allocator that is",
        "right but for the order (nine tenths of the campaigns), and the planner's.",
        "From order to order a row's memory varies by a standard deviation of",
        f"{min(spread):.1%} to {max(spread):.1%}.",
        "",
        "| | right but for the order | planner |",
        "|---|---|---|",
    ]
    names = ("median", "90th percentile")
    for name, draws, error in zip(names, drawn.T, ours, strict=True):
        low, middle, high = (f"{value:.1%}" for value in draws)
        lines.append(f"| {name} | {middle} ({low} to {high}) | {error:.1%} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Price in every order and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=HERE / "rows")
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    rows = read_rows([given.rows / "ms-swift-memory-2024.yaml"]).rows
    priced = Parallel(n_jobs=given.workers, batch_size=1)(
        delayed(_peaks)(row) for row in rows
    )
    given.out.write_text(page([each for each in priced if each]))


if __name__ == "__main__":
    main()

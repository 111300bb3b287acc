"""Error of measured runs with and without each term: ``python -m ...ablation``.

``python -m benchmarks.accuracy.ablation`` prices every row with the model as it stands,
and again with one term taken out. Both are fitted anew without the row's source. A term
earns its place on sources that did not motivate it.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.accuracy.crossval import left_out
from benchmarks.accuracy.price_for_fit import Observation, observe, steps
from planner.calibration.fitting.fit_columns import Floats, Observed
from planner.calibration.mapping import cases
from planner.calibration.rows.rows import Row, read_rows
from planner.cost import attention, kernels, routing, waves
from planner.cost.meshes import Meshes
from planner.cost.network import collectives
from planner.cost.table import table
from planner.cost.time import (
    contention,
    context_parallel,
    exchange,
    experts,
    host_launch,
    recompute,
)
from planner.frameworks.fitted import DOCUMENTED

HERE = Path(__file__).parent
PAGE = HERE / "ablation.md"
MOVED = 0.001
"""Change of a source's median error from which the page lists it. [1]"""


@dataclass(frozen=True)
class Term:
    """One term of the cost model that can be taken out."""

    name: str
    source: str
    """Paper, code or page that the term is from. [text]"""
    motives: tuple[str, ...]
    """Sources of rows that motivated the term. [text]"""
    place: Any
    """Module that holds the term."""
    attribute: str
    without: Any
    """Value of the attribute with the term taken out."""


def _by_replicas(workload: Any, meshes: Meshes) -> Floats:
    """Straggler factor that counts replicas alone."""
    node = workload.topology.cluster.node.gpus_per_node
    replicas = np.minimum(meshes.dp, np.maximum(meshes.gpus // node, 1))
    factor = 1.0 + workload.profile.straggler * np.sqrt(2.0 * np.log(replicas))
    return np.asarray(factor, dtype=np.float64)


def _unlimited(*columns: Any) -> Floats:
    """No limit on the channels of a tree."""
    return np.full(len(columns[-1]), np.inf)


def _no_busiest(most: int) -> Floats:
    """Largest of n deviates where every rank carries the mean. [1]."""
    return np.zeros(most + 1)


def _all_shown(launches: Floats, _: Floats) -> Floats:
    """Launches of experts that hide behind nothing. [s]."""
    return launches


def _none_idle(rows: Floats, *_: Any) -> Floats:
    """Outputs lost where no wave is left in part. [1]."""
    return 0.0 * rows


def _none_skipped(*_: Any) -> str:
    """Product that a recomputed layer leaves out: none. [text]."""
    return ""


def _level_of_products(workload: Any) -> float:
    """Rate of attention over its curve where the level of products holds. [1]."""
    profile = workload.profile
    return float(profile.clock * profile.attention_rate)


TERMS = (
    Term(
        "contention follows the bytes that pass, not the seconds on a slow link",
        "a slow link moves fewer bytes through memory and multiprocessors; rate fitted",
        ("fms-fsdp",),
        contention,
        "BUSY_RATE",
        1.0,
    ),
    Term(
        "what holds a machine back is the machine's, not its stack's",
        "cscs-docs docs/running/slurm.md, 660 W; SimuMax configs/system, products",
        ("gh200-gipfel-zeltrxn", "megatron-moe-modelzoo", "simumax-b200"),
        cases,
        "held",
        lambda its, _: its,
    ),
    Term(
        "every node waits for every other, not replicas alone",
        "expected maximum of n normal deviates",
        (),
        table,
        "straggler_factor",
        _by_replicas,
    ),
    Term(
        "the channels of a tree limit an all-reduce between nodes",
        "NCCL src/graph/tuning.cc, perChMaxTreeBws",
        ("vtrain-multi",),
        collectives,
        "tree_limit",
        _unlimited,
    ),
    Term(
        "adding to an fp32 gradient hides behind no product but in part",
        "MooreThreads/SimuMax configs/system: products on A100 and B200 that add",
        ("bloom-prequel", "vtrain-multi"),
        kernels,
        "SHOWN_GRADIENT",
        0.0,
    ),
    Term(
        "an A100 loses the blocks that a last wave leaves idle",
        "NVIDIA's kernel table of A100; checked on those of SimuMax",
        ("bloom-prequel",),
        waves,
        "idle_outputs",
        _none_idle,
    ),
    Term(
        "gathers of tensor ranks below 16 bits",
        "TransformerEngine module/base.py, grad_output_preprocess: cast, then gather",
        (),
        exchange,
        "NARROW",
        {},
    ),
    Term(
        "expert ranks wait for the busiest, by the spread of their experts' loads",
        "expected maximum of n normal deviates; forced and free routing of one model",
        ("megatron-moe-modelzoo",),
        routing,
        "largest",
        _no_busiest,
    ),
    Term(
        "launches of experts' kernels hide behind the kernels launched",
        "launches are asynchronous; TransformerEngine GroupedLinear, kernels by expert",
        ("amd-notes", "megatron-moe-modelzoo"),
        experts,
        "shown_launches",
        _all_shown,
    ),
    Term(
        "hosts launch at the speed of their processors",
        "golden values of Megatron-LM's tests on three hosts; TransformerEngine #2053",
        ("gh200-gipfel-zeltrxn", "megatron-ci"),
        host_launch,
        "launch_time",
        lambda _: 1.0,
    ),
    Term(
        "a checkpointed layer of PyTorch stops before its last product",
        "torch.utils.checkpoint.set_checkpoint_early_stop; tests/oracle/test_flops.py",
        (),
        recompute,
        "skipped_gemm",
        _none_skipped,
    ),
    Term(
        "attention has a level of its own, not that of products",
        "curves measured by kernel, hardware/calibration",
        ("megatron-moe-modelzoo", "nemo-docs"),
        attention,
        "attention_level",
        _level_of_products,
    ),
    Term(
        "partial results of PyTorch's ring pass through memory once more",
        "PyTorch distributed/tensor/experimental/_attention.py, _SDPAMerger",
        ("torchtitan",),
        context_parallel,
        "_sums",
        lambda *_: (0.0, 0.0),
    ),
)


@contextmanager
def taken_out(term: Term | None) -> Iterator[None]:
    """Price without a term for the length of a block.

    Args:
        term: The term, or None to change nothing. [-]

    Yields:
        Nothing.
    """
    if term is None:
        yield
        return
    kept = getattr(term.place, term.attribute)
    setattr(term.place, term.attribute, term.without)
    try:
        yield
    finally:
        setattr(term.place, term.attribute, kept)


def _price(row: Row, index: int | None, *, slopes: bool) -> Observation:
    with taken_out(None if index is None else TERMS[index]):
        return observe(row, DOCUMENTED, slopes=slopes)


def priced(rows: Sequence[Row], index: int | None, workers: int) -> list[Observation]:
    """Price rows with documented constants.

    Args:
        rows: As read. [-]
        index: Term that is taken out; None for the model as it stands. [-]
        workers: Processes. [1]

    Returns:
        The rows; slopes with the model as it stands alone. [-]
    """
    run = Parallel(n_jobs=workers, batch_size=16)
    slopes = index is None
    return list(run(delayed(_price)(row, index, slopes=slopes) for row in rows))


def medians(observed: Observed) -> dict[str, float]:
    """Median error by source, each source left out of the fit.

    Args:
        observed: Rows with a step time. [-]

    Returns:
        Median of |predicted / measured - 1| by source. [1]
    """
    left = left_out(observed, "source")
    sources = np.array(observed.of("source"))
    return {
        name: float(np.median(np.abs(np.expm1(-left[sources == name]))))
        for name in sorted(set(sources))
    }


def _with_slopes(
    some: Iterable[Observation], known: Sequence[Observation]
) -> list[Observation]:
    """Observations with the slopes of the model as it stands."""
    return [
        replace(one, slopes=whole.slopes) if one.tags else one
        for one, whole in zip(some, known, strict=True)
    ]


def page(
    whole: dict[str, float], without: Sequence[tuple[Term, dict[str, float]]]
) -> str:
    """The table of all terms, by source.

    Args:
        whole: Errors of the model as it stands. [1]
        without: Each term with the errors where it is taken out. [1]

    Returns:
        Markdown. [text]
    """
    lines = [
        "# Terms of the cost model, each taken out",
        "",
        "    python -m benchmarks.accuracy.ablation",
        "",
        "Median error of step times by source, the source left out of the fit. Listed",
        "are sources whose median a term moves by 0.1 points; `*` marks its motives.",
    ]
    for term, errors in without:
        lines += ["", f"## {term.name}", "", f"Source: {term.source}.", ""]
        lines += ["| source | with | without |", "|---|---|---|"]
        lines += _table(term, whole, errors)
    return "\n".join(lines) + "\n"


def _table(
    term: Term, whole: dict[str, float], errors: dict[str, float]
) -> Iterator[str]:
    def line(name: str, chosen: Callable[[str], bool]) -> str:
        means = [np.mean([e[s] for s in e if chosen(s)]) for e in (whole, errors)]
        return f"| {name} | {means[0]:.1%} | {means[1]:.1%} |"

    for name, error in whole.items():
        if abs(error - errors[name]) >= MOVED:
            mark = "*" if name in term.motives else ""
            yield f"| {name}{mark} | {error:.1%} | {errors[name]:.1%} |"
    yield line("average of all sources", lambda _: True)
    yield line("average of the others", lambda name: name not in term.motives)


def main() -> None:
    """Price, fit and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=HERE / "rows")
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    rows = read_rows([given.rows]).rows
    known = priced(rows, None, given.workers)
    whole = medians(steps(known))
    without = []
    for index, term in enumerate(TERMS):
        some = _with_slopes(priced(rows, index, given.workers), known)
        without.append((term, medians(steps(some))))
    given.out.write_text(page(whole, without))


if __name__ == "__main__":
    main()

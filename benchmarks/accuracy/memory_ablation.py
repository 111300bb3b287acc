"""Memory error with and without a software fact: ``python -m ...memory_ablation``.

Every row with a measured peak is priced as its stack stands, and again with one fact of
the stack taken back to what was priced before. Nothing is fitted.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from unittest import mock

from joblib import Parallel, delayed

from planner.calibration.accuracy.price import described, price_case
from planner.calibration.accuracy.summary import is_v100
from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.calibration.rows.rows import Row, read_rows
from planner.calibration.rows.unsupported import UnsupportedError
from planner.cost.memory import cached_bytes
from planner.cost.memory.cached_bytes import orders
from planner.hardware.reading.files import SHIPPED
from planner.specs.frameworks.framework import Recipe

HERE = Path(__file__).parent
PAGE = HERE / "memory_ablation.md"
MOVED = 0.001
"""Change of a source's median error from which the page lists it. [1]"""
ONE_THREAD = {"ampere": 12.0, "hopper": 64.0, "blackwell": 64.0}
"""Workspaces of cuBLAS's one thread and of TransformerEngine. [MiB]"""
Errors = dict[str, float]
"""Median of |predicted / measured - 1| by source. [1]"""


@dataclass(frozen=True)
class Fact:
    """One fact of a stack's memory.

    Attributes:
        name: The fact. [text]
        source: Code that shows it. [text]
        motives: Sources of rows because of which it was looked for. [text]
        room: Framework whose stacks have it. [text]
        without: Recipe of a stack, by its name, without the fact. [-]
        aside: Context without the fact, where no recipe says it. [-]
    """

    name: str
    source: str
    motives: tuple[str, ...]
    room: str
    without: Callable[[Recipe, str], Recipe] = lambda recipe, _: recipe
    aside: Callable[[], AbstractContextManager[object]] = nullcontext


def _eager_loss(recipe: Recipe, stack: str) -> Recipe:
    compiled = recipe.logits_bytes == 10 and stack not in OLD
    return replace(recipe, logits_bytes=6) if compiled else recipe


def _early_states() -> AbstractContextManager[object]:
    """The optimizer's states come after the first text of the first step."""
    first = lambda *batches: orders(*batches[:3])  # noqa: E731
    return mock.patch.object(cached_bytes, "orders", first)


OLD = ("megatron-2021", "megatron-2022", "megatron-deepspeed")
"""Stacks with a loss of 10 B a logit before there was a compiled one. [text]"""
FACTS = (
    Fact(
        "Megatron's fused loss makes its gradient in a new fp32 buffer",
        "megatron/core/fusions/fused_cross_entropy.py under Inductor of PyTorch 2.13.0",
        ("mlperf-v5.1",),
        "megatron",
        _eager_loss,
    ),
    Fact(
        "cuBLAS has a workspace for each of two threads",
        "PyTorch CublasHandlePool.cpp; CUBLAS_WORKSPACE_CONFIG of Megatron-LM's tests",
        ("megatron-ci",),
        "megatron",
        lambda recipe, _: replace(recipe, workspace_mib=ONE_THREAD),
    ),
    Fact(
        "Liger's loss has its logits freed before the backward",
        "transformers trainer.py, compute_loss; Liger-Kernel ops/cross_entropy.py",
        ("halo-b300",),
        "accelerate",
        lambda recipe, stack: (
            replace(recipe, logits_bytes=8) if stack == "hf-liger" else recipe
        ),
    ),
    Fact(
        "a recomputed layer of experts sends no token again",
        "github:whitecircle/halo src/distributed/expert_parallel, _gc_dispatch",
        ("halo-b300",),
        "accelerate",
        lambda recipe, _: replace(recipe, keeps_dispatched=False),
    ),
    Fact(
        "code of Qwen (1) and Baichuan 2 does not raise logits to fp32",
        "modeling_qwen.py of Qwen-7B and modeling_baichuan.py of Baichuan2-7B; "
        "accelerate utils/operations.py, convert_outputs_to_fp32",
        ("ms-swift-memory-2024",),
        "accelerate",
        lambda recipe, _: (
            replace(recipe, loss="upcast") if recipe.loss == "half" else recipe
        ),
    ),
    Fact(
        "a batch longer than all before it needs new memory",
        "PyTorch CUDACachingAllocator.cpp; transformers data_collator.py, padding",
        ("ms-swift-memory-2024",),
        "accelerate",
        lambda recipe, _: replace(recipe, lengths="cut"),
    ),
    Fact(
        "states are made after all texts of the first step",
        "transformers trainer.py, _inner_training_loop; torch/optim/adamw.py",
        ("ms-swift-memory-2024",),
        "accelerate",
        aside=_early_states,
    ),
    Fact(
        "FSDP1 keeps the cache of wrapping, and gathers on streams of its own",
        "PyTorch 2.2 torch/distributed/fsdp: _init_utils.py, flat_param.py, "
        "_runtime_utils.py; train.py of AnswerDotAI/fsdp_qlora",
        ("fsdp-qlora",),
        "accelerate",
        lambda recipe, _: replace(recipe, flat_parameters=False),
    ),
)


def _without(case: Case, fact: Fact) -> Case:
    """The case on a stack that lacks a fact."""
    framework = case.workload.framework
    if framework.name != fact.room:
        return case
    recipe = fact.without(framework.recipe, case.stack)
    if recipe == framework.recipe:
        return case
    framework = replace(framework, recipe=recipe)
    return replace(case, workload=replace(case.workload, framework=framework))


def _errors_of(row: Row) -> tuple[str, list[float]] | None:
    """Source of a row, and its error with all facts and without each. [1]."""
    try:
        case = case_of(row, SHIPPED)
    except UnsupportedError:
        return None
    known = described(case)
    if not known.counted or is_v100(known) or not case.measured.memory_gib:
        return None
    whole = price_case(case).memory_error
    found = [whole, *(_error_without(fact, case, whole) for fact in FACTS)]
    errors = [error for error in found if error is not None]
    return (row.source_key, errors) if len(errors) == len(found) else None


def _error_without(fact: Fact, case: Case, whole: float | None) -> float | None:
    """Error of a case without a fact; with all facts it is known. [1]."""
    other = _without(case, fact)
    if other is case and fact.aside is nullcontext:
        return whole
    with fact.aside():
        return price_case(other).memory_error


def medians(rows: Sequence[Row], workers: int) -> list[Errors]:
    """Median error by source, with all facts and then without each.

    Args:
        rows: As read. [-]
        workers: Processes. [1]

    Returns:
        One mapping for all facts, and one for each fact taken out. [1]
    """
    priced = Parallel(n_jobs=workers, batch_size=16)(
        delayed(_errors_of)(row) for row in rows if row.spec is None
    )
    by_source: dict[str, list[list[float]]] = defaultdict(list)
    for source, errors in filter(None, priced):
        by_source[source].append(errors)
    return [
        {
            source: median(abs(row[which]) for row in each)
            for source, each in sorted(by_source.items())
        }
        for which in range(len(FACTS) + 1)
    ]


def page(whole: Errors, without: Sequence[Errors]) -> str:
    """The table of all facts, by source.

    Args:
        whole: Errors with every fact. [1]
        without: Errors without each fact, in order. [1]

    Returns:
        Markdown. [text]
    """
    lines = [
        "# Facts of stacks' memory, each taken out",
        "",
        "    python -m benchmarks.accuracy.memory_ablation",
        "",
        "Median error of memory peaks by source; nothing is fitted. Listed are sources",
        "whose median a fact moves by 0.1 points, and, marked `*`, those for which it",
        "was looked for.",
    ]
    for fact, errors in zip(FACTS, without, strict=True):
        lines += ["", f"## {fact.name}", "", f"Source: {fact.source}.", ""]
        lines += ["| source | with | without |", "|---|---|---|"]
        lines += _table(fact, whole, errors)
    return "\n".join(lines) + "\n"


def _table(fact: Fact, whole: Errors, errors: Errors) -> Iterator[str]:
    for name, error in whole.items():
        motive = name in fact.motives
        if motive or abs(error - errors[name]) >= MOVED:
            mark = "*" if motive else ""
            yield f"| {name}{mark} | {error:.1%} | {errors[name]:.1%} |"
    means = (fmean(each.values()) for each in (whole, errors))
    with_, without = means
    yield f"| average of all sources | {with_:.1%} | {without:.1%} |"


def main() -> None:
    """Price and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=HERE / "rows")
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    whole, *without = medians(read_rows([given.rows]).rows, given.workers)
    given.out.write_text(page(whole, without))


if __name__ == "__main__":
    main()

"""Terms add up to the number that is asked for, and formulas give their values."""

import ast
import operator
from collections.abc import Iterator
from dataclasses import replace
from math import isclose
from pathlib import Path

import pytest
from each import each
from examples import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from strategies import small_job
from tiny_models import FAMILIES, models

from planner.cost.estimate.pricing import Priced, price
from planner.cost.why.ask import CAUSES, MEMORY, NAMES, STEP, terms_of
from planner.cost.why.memory import PARTS
from planner.cost.why.terms import Term
from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED
from planner.job.loading import load
from planner.models.architecture import Architecture
from planner.planning.prediction.predict import predict
from planner.questions.predict import Predict
from planner.specs.answer.estimate import Estimate
from planner.specs.layouts.layout import PartialLayout
from planner.specs.search import SearchSpec

JOBS = Path(__file__).resolve().parents[4] / "configs" / "jobs"
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
TEN: tuple[tuple[str, dict[str, object]], ...] = (
    ("bloom-176b-384-a100", {}),
    ("deepseek-v3-2048-h800", {}),
    ("gpt3-175b-1536-a100", {}),
    ("llama-3.1-405b-128k-16k-h100", {}),
    ("llama-3.1-405b-16k-h100", {}),
    ("llama-3.1-405b-8k-h100", {}),
    ("megatron-1t-3072-a100", {}),
    ("mt-nlg-530b-2240-a100", {}),
    ("gpt-oss-120b-64-h200", {"tp": 1, "ep": 8}),
    ("llama-2-7b-4-rtx-4090", {"tp": 1, "pp": 1, "zero_stage": 3}),
    ("mixtral-8x7b-64-h100", {"tp": 2, "pp": 1}),
    (
        "llama-3.1-70b-512-h100-256-a100",
        {
            "tp": 8,
            "pp": 2,
            "pools": "[{pool: h100, stages: [0]}, {pool: a100, stages: [1]}]",
        },
    ),
)
"""Shipped jobs, with a layout for those that have none."""


def leaves(term: Term) -> Iterator[Term]:
    if not term.parts:
        yield term
    for part in term.parts:
        yield from leaves(part)


def every(term: Term) -> Iterator[Term]:
    yield term
    for part in term.parts:
        yield from every(part)


def value_of(node: ast.expr, numbers: dict[str, float]) -> float:
    if isinstance(node, ast.Name):
        return numbers[node.id]
    if isinstance(node, ast.BinOp):
        left, right = (value_of(side, numbers) for side in (node.left, node.right))
        return float(OPERATORS[type(node.op)](left, right))
    assert isinstance(node, ast.Constant)
    return float(node.value)  # type: ignore[arg-type]


def check(term: Term) -> None:
    """Parts add up to their parent, leaves to the root; numbers give the values."""
    for node in every(term):
        if node.parts:
            total = sum(part.value for part in node.parts)
            assert isclose(total, node.value, rel_tol=1e-9, abs_tol=1e-15), node.title
        elif node.value:
            assert node.formula, node.title
        if node.numbers:
            formula = ast.parse(node.formula, mode="eval").body
            told = node.calls * value_of(formula, node.numbers)
            assert isclose(told, node.value, rel_tol=1e-9, abs_tol=1e-9), node
    total = sum(leaf.value for leaf in leaves(term))
    assert isclose(total, term.value, rel_tol=1e-9, abs_tol=1e-12)


def check_all(layout: Priced, estimate: Estimate) -> None:
    """Every number that has terms, against the estimate."""
    step = terms_of(layout, STEP)
    check(step)
    assert isclose(step.value, estimate.step_time_s.value, rel_tol=1e-9)
    times = estimate.time_breakdown_s.model_dump() | estimate.other_by_cause_s
    for name in CAUSES:
        term = terms_of(layout, name)
        check(term)
        wanted = times.get(name, 0.0)
        assert isclose(term.value, wanted, rel_tol=1e-9, abs_tol=1e-12), name
    memory = terms_of(layout, MEMORY)
    check(memory)
    peak = estimate.memory.peak_device_gib.value
    assert isclose(memory.value, peak, rel_tol=1e-9)
    named = {name: terms_of(layout, name).value for name in PARTS}
    assert isclose(sum(named.values()), peak, rel_tol=1e-9)


@each(("name", "layout"), TEN)
def test_leaves_of_shipped_jobs_add_up(name: str, layout: dict[str, object]) -> None:
    job = load(
        JOBS / f"{name}.yaml", [f"layout.{k}={v}" for k, v in layout.items()], SHIPPED
    )
    for phase, plan in Predict(job).within(60.0).pairs:
        workload = phase.job.workload_of(plan)
        check_all(price(workload, plan.layout), plan.estimate)


@given(
    st.sampled_from(["megatron", "torchtitan", "accelerate", "deepspeed"]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from(["none", "full"]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from(FAMILIES).flatmap(models),
)
@settings(max_examples=examples(1600))
def test_terms_of_any_layout_add_up(
    name: str, tp: int, pp: int, recompute: str, zero: int, model: Architecture
) -> None:
    layout = {"tp": tp, "pp": pp, "recompute": recompute, "zero_stage": zero}
    workload = replace(small_job(SearchSpec(), name=name), model=model)
    try:
        plan = predict(workload, PartialLayout.model_validate(layout))
    except BadInputError:
        event("refused")
        return
    event("priced")
    check_all(price(workload, plan.layout), plan.estimate)


def test_compute_of_405b_goes_down_to_the_rate_of_one_gemm() -> None:
    job = load(JOBS / "llama-3.1-405b-16k-h100.yaml", None, SHIPPED)
    ((phase, plan),) = Predict(job).within(60.0).pairs
    compute = terms_of(price(phase.job.workload_of(plan), plan.layout), "compute")
    assert compute.value == pytest.approx(4.873, abs=5e-4)
    (rank,) = compute.parts
    (layers,) = rank.parts
    (gemm,) = (part for part in layers.parts if part.name == "fc1")
    product = next(part for part in gemm.parts if part.name == "product")
    # 8 layers, 16 micro-batches of 8,192 tokens; 2 x 53,248 columns over 8 ranks.
    assert product.calls == 8 * 16
    assert product.formula == "GEMM 8,192 x 13,312 x 16,384"
    multiply = next(part for part in product.parts if part.name == "multiply")
    numbers = multiply.numbers
    assert (numbers["P"], numbers["efficiency"]) == pytest.approx((989e12, 0.711))
    assert any("calibration/h100-sxm5-80gb.yaml" in text for text in multiply.source)
    assert any("peak_bf16" in text for text in multiply.source)
    assert "clock" in multiply.stack


def test_constants_set_by_the_job_say_so() -> None:
    job = load(JOBS / "llama-3.1-405b-16k-h100.yaml", ["stack.clock=0.5"], SHIPPED)
    ((phase, plan),) = Predict(job).within(60.0).pairs
    compute = terms_of(price(phase.job.workload_of(plan), plan.layout), "compute")
    (said,) = compute.stack.values()
    assert "clock 0.5 (0.825781)" in said
    clocks = {leaf.stack["clock"] for leaf in leaves(compute) if "clock" in leaf.stack}
    assert clocks == {"0.5"}


def test_activations_are_those_in_flight_of_each_stage() -> None:
    job = load(JOBS / "llama-3.1-405b-16k-h100.yaml", None, SHIPPED)
    ((phase, plan),) = Predict(job).within(60.0).pairs
    term = terms_of(price(phase.job.workload_of(plan), plan.layout), "activations")
    assert len(term.parts) == 8
    assert {part.numbers["in_flight"] for part in term.parts} <= set(range(1, 129))


@each("name", ("step_tme", "comput", ""))
def test_an_unknown_number_is_refused_with_the_nearest(name: str) -> None:
    job = load(JOBS / "llama-3.1-405b-16k-h100.yaml", None, SHIPPED)
    ((phase, plan),) = Predict(job).within(60.0).pairs
    with pytest.raises(BadInputError, match="no number") as refused:
        terms_of(price(phase.job.workload_of(plan), plan.layout), name)
    assert refused.value.field == "--why"
    if name:
        assert f"did you mean {'step_time' if 'tme' in name else 'compute'}" in str(
            refused.value
        )


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)

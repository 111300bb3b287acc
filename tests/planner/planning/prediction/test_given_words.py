"""Every word of a given layout is in the completed layout, or is refused."""

from dataclasses import replace
from typing import Any

import pytest
from examples import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from strategies import small_job
from typer.testing import CliRunner

import planner
from planner.cli import app
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.planning.prediction.within import predict_within
from planner.specs.layouts.layout import Layout, PartialLayout
from planner.specs.layouts.layout_text import recompute_words
from planner.specs.reading.layout_line import given_layout, read_layout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

NAMES = ("megatron", "torchtitan", "accelerate", "deepspeed")
WORDS: dict[str, list[str]] = {
    "tp": ["1", "2", "2"],
    "sp": ["true", "false"],
    "pp": ["1", "2"],
    "vpp": ["1", "2"],
    "cp": ["1", "2"],
    "cp_kind": ["ring", "all-gather", "ulysses"],
    "ep": ["1", "2"],
    "etp": ["1", "2"],
    "dp": ["1", "2", "4"],
    "dp_shard": ["1", "2", "4"],
    "zero_stage": ["0", "1", "2", "3"],
    "micro_batch": ["1", "2"],
    "grad_accum": ["1", "2", "4"],
    "schedule": ["1f1b", "interleaved", "gpipe", "zb-h1"],
    "order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"],
    "recompute": ["none", "full", "full:1"],
    "stages": ["even", "2/2", "4", "4x1"],
    "gradient_dtype": ["fp32", "bf16"],
    "parameter_dtype": ["bf16", "fp8"],
    "offload.optimizer": ["0.0", "0.5", "1.0"],
    "offload.activations": ["0.0", "0.5"],
}


def job(name: str, precision: str = "bf16", **search: Any) -> Workload:
    workload = small_job(SearchSpec(**search), name=name)
    fields = workload.training.model_dump(exclude_unset=True)
    training = TrainingSpec.model_validate(fields | {"precision": precision})
    return replace(workload, training=training)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Some words of a layout, in any order."""
    some = st.lists(st.sampled_from(sorted(WORDS)), unique=True, min_size=1, max_size=6)
    return ",".join(f"{key}={draw(st.sampled_from(WORDS[key]))}" for key in draw(some))


def kept(partial: PartialLayout, plan: Layout) -> None:
    """Hold a completed layout against what was given."""
    fields = partial.given()
    if partial.comm_dtype:
        sent = partial.comm_dtype.model_dump(exclude_none=True)
        assert sent == {name: getattr(plan.comm_dtype, name) for name in sent}
    if isinstance(partial.stages, tuple):
        counts = [stage.layers for stage in partial.stages]
        assert counts == list(plan.layers_per_stage)
    if partial.recompute:
        assert recompute_words(plan) == partial.recompute
    for name in fields.keys() - {"comm_dtype", "stages", "recompute"}:
        assert getattr(plan, name) == fields[name], name


@given(st.sampled_from(NAMES), st.sampled_from(["bf16", "fp8"]), lines())
@settings(max_examples=examples(2000))
def test_a_word_is_in_the_completed_layout_or_refused(
    name: str, precision: str, line: str
) -> None:
    partial = read_layout(line)
    try:
        plan = predict_within(job(name, precision), partial).layout
    except BadInputError:
        event("refused")
        return
    event("priced")
    kept(partial, plan)
    again = predict_within(job(name, precision), read_layout(given_layout(plan)))
    assert again.layout == plan


def test_one_format_leaves_the_other_to_framework_and_search() -> None:
    """The schema's fp32 gradients are not those of accelerate, which sends bf16."""
    line = read_layout("dp=8,micro_batch=1,parameter_dtype=bf16")
    sent = predict_within(job("accelerate"), line).layout.comm_dtype
    assert (sent.gradients, sent.parameters) == ("bf16", "bf16")
    listed = job("megatron", "fp8", parameter_dtype="fp8")
    line = read_layout("tp=2,micro_batch=1,gradient_dtype=bf16")
    sent = predict_within(listed, line).layout.comm_dtype
    assert (sent.gradients, sent.parameters) == ("bf16", "fp8")


JOB = "llama-3-8b-8-a100"
LINE = "tp=2,micro_batch=1,zero_stage=1,recompute=none,stages=even"


@pytest.mark.parametrize(
    "path", ["layout.comm_dtype.gradients", "search.gradient_dtype"]
)
def test_a_set_beside_a_layout_changes_the_step(path: str) -> None:
    own = planner.predict(JOB, layout=LINE)
    narrow = planner.predict(JOB, layout=LINE, set={path: "bf16"})
    assert own.layout.comm_dtype.gradients == "fp32"
    assert narrow.layout.comm_dtype.gradients == "bf16"
    same = planner.predict(JOB, layout=f"{LINE},gradient_dtype=bf16")
    assert narrow.estimate == same.estimate != own.estimate


@pytest.mark.parametrize("path", ["layout.tp", "layout"])
def test_a_set_of_what_the_line_says_is_refused(path: str) -> None:
    value = {"tp": 1} if path == "layout" else 1
    with pytest.raises(BadInputError, match="is given by --layout, too"):
        planner.predict(JOB, layout=LINE, set={path: value})


@pytest.mark.parametrize("command", ["predict", "memory", "explain"])
def test_every_command_takes_a_set_beside_a_layout(command: str) -> None:
    """An illegal share shows that the assignment was read at all."""
    line = ["--layout", LINE, "--set", "layout.offload.parameters=0.5"]
    answer = CliRunner().invoke(app, [command, JOB, *line])
    assert answer.exit_code == 2  # bad input
    assert "ZeRO-1 does not shard parameters" in " ".join(answer.stderr.split())


def test_the_line_of_a_plan_is_taken_back_whole() -> None:
    plan = CliRunner().invoke(app, ["plan", JOB, "-q"])
    again = CliRunner().invoke(
        app, ["predict", JOB, "-q", "--layout", plan.stdout.strip()]
    )
    assert ",stages=32," in plan.stdout
    assert again.stdout == plan.stdout
